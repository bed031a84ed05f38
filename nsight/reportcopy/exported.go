package reportcopy

import (
	"context"

	"tracelake/nsight"
	"tracelake/schema"
)

// exported is a report in another form than SQLite.
type exported struct{ t *nsight.Tables }

func openExported(path string) (source, error) {
	t, err := nsight.OpenTables(path)
	if err != nil {
		return nil, err
	}
	return exported{t}, nil
}

func (e exported) close() error { return e.t.Close() }

func (e exported) names() ([]string, error) { return e.t.Names(), nil }

func (e exported) columns(table string, listed []column) (out []column, err error) {
	names := make([]string, len(listed))
	for i, x := range listed {
		names[i] = x.name
	}
	has, err := e.t.Has(table, names)
	if err != nil {
		return nil, err
	}
	for i, x := range listed {
		if has[i] {
			out = append(out, x)
		}
	}
	return out, nil
}

func (e exported) scan(ctx context.Context, table string, cols []column, row func([]any) error) error {
	fields := make([]nsight.Field, len(cols))
	for i, x := range cols {
		fields[i] = nsight.Field{Name: x.name, Type: x.storage()}
	}
	return e.t.Scan(ctx, table, fields, row)
}

// storage is how values of a column are stored where columns have types.
func (x column) storage() schema.Type {
	switch x.kind {
	case text:
		return schema.String
	case real:
		return schema.Float64
	case number, global, pid, stringID:
	}
	return schema.Int64
}
