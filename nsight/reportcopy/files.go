package reportcopy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"tracelake/schema"
)

// tableWriter writes one table.
type tableWriter interface {
	put(row []any) error
	finish() error
}

// opener begins a table in a file.
type opener func(w io.Writer, table string, cols []column) (tableWriter, error)

// out is a file that is being written.
type out struct {
	f *os.File
	*bufio.Writer
}

func createOut(path string) (*out, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &out{f, bufio.NewWriterSize(f, 1<<18)}, nil
}

// finish puts the file on disk.
func (o *out) finish() error {
	err := errors.Join(o.Flush(), o.f.Sync())
	return errors.Join(err, o.f.Close())
}

// oneFile is a copy with all tables in one file.
type oneFile struct {
	out  *out
	open opener
	last tableWriter
}

func createFile(path string, open opener) (sink, error) {
	o, err := createOut(path)
	if err != nil {
		return nil, err
	}
	return &oneFile{out: o, open: open}, nil
}

func (f *oneFile) create(table string, cols []column) (func([]any) error, error) {
	if err := f.endTable(); err != nil {
		return nil, err
	}
	var err error
	if f.last, err = f.open(f.out, table, cols); err != nil {
		return nil, err
	}
	return f.last.put, nil
}

func (f *oneFile) endTable() error {
	if f.last == nil {
		return nil
	}
	last := f.last
	f.last = nil
	return last.finish()
}

func (f *oneFile) finish() error {
	if err := f.endTable(); err != nil {
		f.abandon()
		return err
	}
	return f.out.finish()
}

func (f *oneFile) abandon() { _ = f.out.f.Close() }

// directory is a copy with a file for each table.
type directory struct {
	path, ext string
	open      opener
	last      *oneFile
}

func createDir(path, ext string, open opener) (sink, error) {
	if err := os.Mkdir(path, 0o777); err != nil {
		return nil, err
	}
	return &directory{path: path, ext: ext, open: open}, nil
}

func (d *directory) create(table string, cols []column) (func([]any) error, error) {
	if err := d.finish(); err != nil {
		return nil, err
	}
	o, err := createOut(filepath.Join(d.path, table+d.ext))
	if err != nil {
		return nil, err
	}
	d.last = &oneFile{out: o, open: d.open}
	return d.last.create(table, cols)
}

func (d *directory) finish() error {
	if d.last == nil {
		return nil
	}
	last := d.last
	d.last = nil
	return last.finish()
}

func (d *directory) abandon() {
	if d.last != nil {
		d.last.abandon()
	}
}

// lines writes a table as JSON lines, as nsys does: nulls left out, the name of
// the table last.
type lines struct {
	w     io.Writer
	names []string // quoted, with what follows a key
	end   string
	buf   []byte
	text  bytes.Buffer
	quote *json.Encoder // into text
}

func newLines(w io.Writer, table string, cols []column) (tableWriter, error) {
	l := &lines{w: w, end: `"table": ` + strconv.Quote(table) + "}\n"}
	for _, x := range cols {
		l.names = append(l.names, strconv.Quote(x.name)+": ")
	}
	l.quote = json.NewEncoder(&l.text)
	l.quote.SetEscapeHTML(false)
	return l, nil
}

func (l *lines) put(row []any) error {
	l.buf = append(l.buf[:0], '{')
	for i, v := range row {
		if v == nil {
			continue
		}
		l.buf = append(l.buf, l.names[i]...)
		switch v := v.(type) {
		case int64:
			l.buf = strconv.AppendInt(l.buf, v, 10)
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				l.buf = append(l.buf, "null"...) // no numbers of JSON
			} else {
				l.buf = strconv.AppendFloat(l.buf, v, 'g', -1, 64)
			}
		case string:
			l.text.Reset()
			if err := l.quote.Encode(v); err != nil {
				return err
			}
			l.buf = append(l.buf, bytes.TrimSpace(l.text.Bytes())...)
		}
		l.buf = append(l.buf, ", "...)
	}
	l.buf = append(l.buf, l.end...)
	_, err := l.w.Write(l.buf)
	return err
}

func (l *lines) finish() error { return nil }

// arrowRows is how many rows a batch of Arrow holds.
const arrowRows = 1 << 14

var arrowTypes = map[schema.Type]arrow.DataType{
	schema.Int64: arrow.PrimitiveTypes.Int64, schema.Float64: arrow.PrimitiveTypes.Float64, schema.String: arrow.BinaryTypes.String,
}

// batches writes a table in one of the framings of Arrow.
type batches struct {
	w interface {
		Write(rec arrow.RecordBatch) error
		Close() error
	}
	b *array.RecordBuilder
	n int
}

func arrowSchema(table string, cols []column) *arrow.Schema {
	var fields []arrow.Field
	for _, x := range cols {
		fields = append(fields, arrow.Field{Name: x.name, Type: arrowTypes[x.storage()], Nullable: true})
	}
	meta := arrow.NewMetadata([]string{"table_name"}, []string{table})
	return arrow.NewSchema(fields, &meta)
}

// newArrowStream begins a table among others that follow in the same file.
func newArrowStream(w io.Writer, table string, cols []column) (tableWriter, error) {
	s := arrowSchema(table, cols)
	return &batches{w: ipc.NewWriter(w, ipc.WithSchema(s)), b: array.NewRecordBuilder(memory.DefaultAllocator, s)}, nil
}

// newArrowTable begins a table in a file of its own.
func newArrowTable(w io.Writer, table string, cols []column) (tableWriter, error) {
	s := arrowSchema(table, cols)
	f, err := ipc.NewFileWriter(w, ipc.WithSchema(s))
	if err != nil {
		return nil, err
	}
	return &batches{w: f, b: array.NewRecordBuilder(memory.DefaultAllocator, s)}, nil
}

func (a *batches) put(row []any) error {
	for i, v := range row {
		switch f := a.b.Field(i).(type) {
		case *array.Int64Builder:
			if n, ok := v.(int64); ok {
				f.Append(n)
				continue
			}
		case *array.Float64Builder:
			if n, ok := v.(float64); ok {
				f.Append(n)
				continue
			}
		case *array.StringBuilder:
			if s, ok := v.(string); ok {
				f.Append(s)
				continue
			}
		}
		a.b.Field(i).AppendNull()
	}
	if a.n++; a.n < arrowRows {
		return nil
	}
	return a.flush()
}

func (a *batches) flush() error {
	a.n = 0
	rec := a.b.NewRecordBatch()
	defer rec.Release()
	return a.w.Write(rec)
}

func (a *batches) finish() error {
	defer a.b.Release()
	if err := a.flush(); err != nil {
		return err
	}
	return a.w.Close()
}

// parquetRows is how many rows a row group holds.
const parquetRows = 1 << 17

var parquetCompression compress.Codec = &parquet.Zstd

// groups writes a table as Parquet.
type groups struct {
	w   *parquet.GenericWriter[any]
	at  []int // position of a column in the file, by column
	row parquet.Row
}

func newParquetTable(w io.Writer, table string, cols []column) (tableWriter, error) {
	node := parquet.Group{}
	for _, x := range cols {
		leaf := parquet.Int(64)
		switch x.storage() {
		case schema.Float64:
			leaf = parquet.Leaf(parquet.DoubleType)
		case schema.String:
			leaf = parquet.String()
		case schema.Int64, schema.Bool, schema.Intervals:
		}
		node[x.name] = parquet.Optional(leaf)
	}
	s := parquet.NewSchema(table, node)
	g := &groups{row: make(parquet.Row, len(cols))}
	for _, x := range cols {
		leaf, _ := s.Lookup(x.name)
		g.at = append(g.at, leaf.ColumnIndex)
	}
	g.w = parquet.NewGenericWriter[any](w, s, parquet.Compression(parquetCompression), parquet.MaxRowsPerRowGroup(parquetRows), parquet.KeyValueMetadata("table_name", table))
	return g, nil
}

func (g *groups) put(row []any) error {
	for i, v := range row {
		value, at := parquet.Value{}, g.at[i]
		switch v := v.(type) {
		case int64:
			value = parquet.Int64Value(v)
		case float64:
			value = parquet.DoubleValue(v)
		case string:
			value = parquet.ByteArrayValue([]byte(v))
		}
		level := 1
		if v == nil {
			level = 0
		}
		g.row[at] = value.Level(0, level, at)
	}
	_, err := g.w.WriteRows([]parquet.Row{g.row})
	return err
}

func (g *groups) finish() error { return g.w.Close() }
