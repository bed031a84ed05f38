package convert

import (
	"context"
	"errors"

	"tracelake/analyze/link"
	"tracelake/schema"
)

// Load reads one trace into memory for linking, without writing anything.
// Times, launches and iterations are those that Run writes.
func Load(ctx context.Context, path string, marks link.Marks) (*schema.Trace, *schema.Diagnostics, error) {
	o := Options{}
	if err := o.fill(); err != nil {
		return nil, nil, err
	}
	res, err := readAll(ctx, readerOf(path), reading{o: &o})
	if err != nil {
		return nil, nil, err
	}
	return newModel(res, &marks).fill().trace, res.diags, nil
}

// readAll reads an input, again where it has to.
func readAll(ctx context.Context, r reader, o reading) (*loaded, error) {
	for try := 0; ; try++ {
		res, err := r.read(ctx, o)
		if !errors.Is(err, errAgain{}) || try == maxRestarts {
			return res, err
		}
	}
}
