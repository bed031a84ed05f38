package columnar

import (
	"fmt"

	"github.com/parquet-go/parquet-go/format"

	"tracelake/internal/aside"
	"tracelake/internal/freelist"
	"tracelake/schema"
)

// Column is one encoded column of a row group.
type Column struct {
	table      *schema.Table
	rows, col  int
	data       []byte
	start, end int // place in the buffer of a Chunk
	leaves     []leaf
	sorted     bool // ascending, rows without a value last

	aside *aside.File // holds data instead, until Load
	at, n int64       // its place there
}

// Unload moves the encoded data to a file, if that takes it.
func (c *Column) Unload(to *aside.File) {
	if at, ok := to.Put(c.data); ok {
		c.aside, c.at, c.n, c.data = to, at, int64(len(c.data)), nil
	}
}

// Load brings back what Unload moved, as NewChunk does.
func (c *Column) Load() error {
	if c.aside == nil {
		return nil
	}
	data := make([]byte, c.n)
	if _, err := c.aside.ReadAt(data, c.at); err != nil {
		return fmt.Errorf("columnar: %w", err)
	}
	c.data, c.aside = data, nil
	return nil
}

// Bytes returns how much memory the encoded column takes.
func (c *Column) Bytes() int { return len(c.data) }

// leaf is one column chunk: a column, or a field of the structs in a list. Its
// offsets count from the start of the Column.
type leaf struct {
	meta  columnMetaData
	pages []page
	idAt  int // where the trace ID goes; 0 in other columns
}

// page is what the page index says of a data page.
type page struct {
	offset   int64
	size     int32
	firstRow int64
	nulls    int64
	values   int // values that are not null
	bounds   bounds
}

// Chunk is an encoded row group. It does not depend on its place in the file.
type Chunk struct {
	table *schema.Table
	rows  int
	cols  []Column
	buf   []byte // the data of all columns in a row, or nil
}

// chunks keeps the buffers of chunks that a file has written.
var chunks = freelist.List[*Chunk]{New: func() *Chunk { return new(Chunk) }}

// NewChunk joins the columns of a row group. They must be all columns of the
// table in its order, each with the same number of rows.
func NewChunk(t *schema.Table, rows int, cols []*Column) (*Chunk, error) {
	if len(cols) != len(t.Columns) {
		return nil, fmt.Errorf("columnar: table %s has %d columns, not %d", t.Name, len(t.Columns), len(cols))
	}
	c := &Chunk{table: t, rows: rows, cols: make([]Column, 0, len(cols))}
	for i, x := range cols {
		if x == nil || x.table != t || x.col != i || x.rows != rows {
			return nil, fmt.Errorf("columnar: table %s, column %s: not encoded as column %d with %d rows",
				t.Name, t.Columns[i].Name, i, rows)
		}
		if err := x.Load(); err != nil {
			return nil, err
		}
		c.cols = append(c.cols, *x)
	}
	return c, nil
}

// Rows returns the number of rows.
func (c *Chunk) Rows() int { return c.rows }

// Bytes returns how much memory the encoded pages take.
func (c *Chunk) Bytes() (n int) {
	for i := range c.cols {
		n += len(c.cols[i].data)
	}
	return n
}

// release hands the buffer to the next Encode.
func (c *Chunk) release() {
	if c.buf == nil {
		return
	}
	clear(c.cols)
	c.buf, c.cols = c.buf[:0], c.cols[:0]
	c.table = nil
	chunks.Put(c)
}

// traceID writes the first column. Its only value is filled in when the file
// is closed, at the same place for every row group of the same size, which is
// why it is not compressed and its dictionary holds nothing else.
func (e *Encoder) traceID(c *Column) error {
	w := &chunkWriter{e: e, cells: cells{decl: &e.table.Columns[0], rows: c.rows}, base: len(e.out)}
	l := w.leaf(format.ByteArray, format.Uncompressed, w.decl.Name)
	l.meta.NumValues = int64(c.rows)
	var value [4 + schema.TraceIDLen]byte
	value[0] = schema.TraceIDLen
	if err := w.dictionary(l, 1, value[:]); err != nil {
		return err
	}
	l.idAt = len(e.out) - w.base - schema.TraceIDLen
	e.page = append(e.page[:0], 1)
	e.page = appendRun(e.page, c.rows, 0, 1)
	p := page{values: c.rows, bounds: bounds{min: value[4:], max: value[4:], minExact: true, maxExact: true}}
	if err := w.data(l, format.RLEDictionary, c.rows, p); err != nil {
		return err
	}
	w.finish(l, p.bounds)
	c.leaves = w.leaves
	return nil
}
