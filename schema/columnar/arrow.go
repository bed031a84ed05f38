package columnar

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"tracelake/schema"
)

// ArrowWriter writes a table as an Arrow IPC file, one record batch per row
// group. Strings are plain utf8: an IPC file may not replace a dictionary
// between batches, and not every reader takes one that grows.
type ArrowWriter struct {
	table  *schema.Table
	schema *arrow.Schema
	id     string
	out    *counter
	ipc    *ipc.FileWriter
	rows   int64
	err    error // first error; the file is of no use after it
}

var _ TableWriter = (*ArrowWriter)(nil)

// counter counts the bytes of a file.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}

// CreateArrow starts an Arrow IPC file. Unlike in Parquet, the trace ID must
// be known from the start, because batches are compressed as they are written.
// The format knows zstd and no compression; Snappy is an error.
func CreateArrow(w io.WriterAt, t *schema.Table, traceID string, o Options) (*ArrowWriter, error) {
	if err := checkID(traceID); err != nil {
		return nil, err
	}
	a := &ArrowWriter{table: t, schema: arrowSchema(t, fileMetadata(t, o.Metadata, traceID)), id: traceID}
	a.out = &counter{Writer: io.NewOffsetWriter(w, 0)}
	opts := []ipc.Option{ipc.WithSchema(a.schema)}
	switch o.Compression {
	case Zstd:
		opts = append(opts, ipc.WithZstd())
	case None:
	default:
		return nil, fmt.Errorf("columnar: Arrow files know no %s compression", o.Compression)
	}
	var err error
	a.ipc, err = ipc.NewFileWriter(a.out, opts...)
	return a, err
}

// maxBatchText is how much text of one column a batch may hold. The offsets of
// utf8 are 32 bits wide.
const maxBatchText = 1 << 30

// Append writes the rows as one record batch, or as several where a column
// holds more text than one can.
func (a *ArrowWriter) Append(rows int, cols []Vector) error {
	if a.err != nil {
		return a.err
	}
	if len(cols) != len(a.table.Columns) {
		return fmt.Errorf("columnar: table %s has %d columns, not %d", a.table.Name, len(a.table.Columns), len(cols))
	}
	if rows < 0 {
		return fmt.Errorf("columnar: table %s: %d rows", a.table.Name, rows)
	}
	all := make([]cells, len(cols))
	large := false
	for i := range cols {
		all[i] = cells{decl: &a.table.Columns[i], rows: rows, v: &cols[i]}
		if i == 0 {
			all[i].v = &Vector{Vals: make([]int64, rows), Dict: []string{a.id}}
		}
		n, err := all[i].checkAll()
		if err != nil {
			return fmt.Errorf("columnar: table %s, column %s: %w", a.table.Name, all[i].decl.Name, err)
		}
		large = large || n > maxBatchText
	}
	if large && rows > 1 {
		half := make([]Vector, len(cols))
		for _, r := range [][2]int{{0, rows / 2}, {rows / 2, rows}} {
			for i := range cols {
				half[i] = all[i].slice(r[0], r[1])
			}
			if err := a.Append(r[1]-r[0], half); err != nil {
				return err
			}
		}
		return nil
	}
	if rows == 0 {
		return nil
	}
	arrays := make([]arrow.Array, len(cols))
	for i := range all {
		arrays[i] = all[i].array()
	}
	batch := array.NewRecordBatch(a.schema, arrays, int64(rows))
	defer batch.Release()
	if a.err = a.ipc.Write(batch); a.err == nil {
		a.rows += int64(rows)
	}
	return a.err
}

// Close writes the footer. The trace ID must be the one given to CreateArrow.
// The output stays open.
func (a *ArrowWriter) Close(traceID string) (Stats, error) {
	if a.err != nil {
		return Stats{}, a.err
	}
	if traceID != a.id {
		return Stats{}, fmt.Errorf("columnar: trace ID %q is not %q, which the file was created with", traceID, a.id)
	}
	if a.err = a.ipc.Close(); a.err != nil {
		return Stats{}, a.err
	}
	a.err = errClosed
	return Stats{Rows: a.rows, Bytes: a.out.n}, nil
}

var intervalFields = arrow.StructOf(
	arrow.Field{Name: "offset_ns", Type: arrow.PrimitiveTypes.Int64},
	arrow.Field{Name: "dur_ns", Type: arrow.PrimitiveTypes.Int64},
)

var intervalList = arrow.ListOfField(arrow.Field{Name: "element", Type: intervalFields})

func arrowType(t schema.Type) arrow.DataType {
	switch t {
	case schema.Float64:
		return arrow.PrimitiveTypes.Float64
	case schema.String:
		return arrow.BinaryTypes.String
	case schema.Bool:
		return arrow.FixedWidthTypes.Boolean
	case schema.Intervals:
		return intervalList
	}
	return arrow.PrimitiveTypes.Int64
}

func arrowSchema(t *schema.Table, meta map[string]string) *arrow.Schema {
	fields := make([]arrow.Field, len(t.Columns))
	for i := range t.Columns {
		c := &t.Columns[i]
		fields[i] = arrow.Field{Name: c.Name, Type: arrowType(c.Type), Nullable: c.Nullable}
	}
	keys := slices.Sorted(maps.Keys(meta))
	values := make([]string, len(keys))
	for i, k := range keys {
		values[i] = meta[k]
	}
	md := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(fields, &md)
}

var errClosed = errors.New("columnar: the file is closed")
