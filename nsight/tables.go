package nsight

import (
	"context"
	"math"
	"path/filepath"

	"tracelake/schema"
)

// Tables gives the rows of an export as they stand there, for copies of it.
type Tables struct{ t tables }

// Field is a column to read, as integers, floating-point numbers or texts.
type Field struct {
	Name string
	Type schema.Type
}

// OpenTables opens an export that is not a database. One that is cut is refused:
// its copy would look whole.
func OpenTables(path string) (*Tables, error) {
	t, err := open(context.Background(), path, Options{})
	if err != nil {
		return nil, err
	}
	if d, ok := t.(*directory); ok && d.cut != "" {
		_ = t.close()
		return nil, reject("%s: %s; export the report again", filepath.Base(path), d.cut)
	}
	return &Tables{t}, nil
}

// Close ends the use of the export.
func (t *Tables) Close() error { return t.t.close() }

// Names are the tables of the export.
func (t *Tables) Names() []string { return t.t.names() }

// Has tells which of the named columns a table has.
func (t *Tables) Has(table string, names []string) ([]bool, error) {
	have, err := t.t.columns(table)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(names))
	for i, n := range names {
		out[i] = column(have, n) >= 0
	}
	return out, nil
}

var kindOfType = map[schema.Type]kind{schema.Int64: integer, schema.Float64: real, schema.String: text}

// Scan gives each row of a table in the order of the export: nil, int64, float64
// or string by field. A value that its field cannot hold is nil.
func (t *Tables) Scan(ctx context.Context, table string, fields []Field, row func([]any) error) error {
	wants := make([]want, len(fields))
	for j, f := range fields {
		wants[j] = want{f.Name, kindOfType[f.Type]}
	}
	values := make([]any, len(fields))
	return t.t.scan(ctx, table, wants, nil, func(b *batch) error {
		for i := range b.n {
			for j, w := range wants {
				switch v := cell(b, j, i); {
				case v == schema.Null:
					values[j] = nil
				case w.kind == text:
					values[j] = b.texts.list[v]
				case w.kind == real:
					values[j] = math.Float64frombits(uint64(v))
				default:
					values[j] = v
				}
			}
			if err := row(values); err != nil {
				return err
			}
		}
		return nil
	})
}
