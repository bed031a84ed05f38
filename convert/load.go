package convert

import (
	"context"
	"errors"
	"os"

	"tracelake/analyze/link"
	"tracelake/kineto"
	"tracelake/schema"
)

// Load reads one trace into memory for linking, without writing anything.
// Times, launches and iterations are those that Run writes.
func Load(ctx context.Context, path string, marks link.Marks) (*schema.Trace, *kineto.Result, error) {
	res, err := read(ctx, path, kineto.Options{BaseNS: tailBase(path)})
	if err != nil {
		return nil, nil, err
	}
	return newModel(res, &marks).trace, res, nil
}

// read reads a file, again where it has to.
func read(ctx context.Context, path string, o kineto.Options) (*kineto.Result, error) {
	for try := 0; ; try++ {
		res, err := readOnce(ctx, path, o)
		var again *kineto.RestartError
		if !errors.As(err, &again) || try == maxRestarts {
			return res, err
		}
		o.BaseNS, o.SkipTo = again.BaseNS, again.SkipTo
	}
}

// maxRestarts is how often a trace may ask to be read again.
const maxRestarts = 20

func readOnce(ctx context.Context, path string, o kineto.Options) (*kineto.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return kineto.Read(ctx, f, o)
}
