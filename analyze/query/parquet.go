package query

import (
	"io"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
)

// parquetBatch is how many rows are handed to the writer at a time.
const parquetBatch = 1024

// printParquet writes a Parquet file: integers and doubles as such, everything
// else as the text that CSV would have.
func printParquet(w io.Writer, r Rows) error {
	var columns ordered
	names := uniqueNames(r.Columns())
	kinds := make([]string, len(names))
	for i, c := range r.Columns() {
		var n parquet.Node
		switch strings.ToUpper(c.Type) {
		case "BOOLEAN":
			n, kinds[i] = parquet.Leaf(parquet.BooleanType), "bool"
		case "BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UINTEGER", "USMALLINT", "UTINYINT":
			n, kinds[i] = parquet.Int(64), "int"
		case "DOUBLE", "FLOAT":
			n, kinds[i] = parquet.Leaf(parquet.DoubleType), "float"
		default:
			n, kinds[i] = parquet.String(), "text"
		}
		columns = append(columns, field{parquet.Optional(n), names[i]})
	}
	s := parquet.NewSchema("result", columns)
	out := parquet.NewWriter(w, s, parquet.Compression(&parquet.Zstd))
	rows := make([]parquet.Row, 0, parquetBatch)
	flush := func() error {
		_, err := out.WriteRows(rows)
		rows = rows[:0]
		return err
	}
	err := each(r, func(values []any) error {
		row := make(parquet.Row, len(values))
		for i, v := range values {
			row[i] = parquetValue(v, kinds[i]).Level(0, level(v), i)
		}
		if rows = append(rows, row); len(rows) == parquetBatch {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	return out.Close()
}

// ordered is a group whose fields keep their order; parquet.Group sorts them.
type ordered []parquet.Field

func (o ordered) ID() int                     { return 0 }
func (o ordered) String() string              { return "group" }
func (o ordered) Type() parquet.Type          { return parquet.Group{}.Type() }
func (o ordered) Optional() bool              { return false }
func (o ordered) Repeated() bool              { return false }
func (o ordered) Required() bool              { return true }
func (o ordered) Leaf() bool                  { return false }
func (o ordered) Fields() []parquet.Field     { return o }
func (o ordered) Encoding() encoding.Encoding { return nil }
func (o ordered) Compression() compress.Codec { return nil }
func (o ordered) GoType() reflect.Type        { return reflect.TypeFor[struct{}]() }

// field is a named column.
type field struct {
	parquet.Node
	name string
}

func (f field) Name() string                           { return f.name }
func (f field) Value(base reflect.Value) reflect.Value { return base }

func level(v any) int {
	if v == nil {
		return 0
	}
	return 1
}

func parquetValue(v any, kind string) parquet.Value {
	switch x := v.(type) {
	case nil:
		return parquet.NullValue()
	case bool:
		if kind == "bool" {
			return parquet.BooleanValue(x)
		}
	case int64:
		if kind == "int" {
			return parquet.Int64Value(x)
		}
	case float64:
		if kind == "float" {
			return parquet.DoubleValue(x)
		}
	}
	return parquet.ByteArrayValue([]byte(text(v)))
}
