package columnar

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"tracelake/schema"
)

// Compression says how the pages of a file are compressed.
type Compression uint8

// Compressions.
const (
	Zstd Compression = iota // fastest level
	Snappy
	None
)

// String returns the name used on the command line.
func (c Compression) String() string {
	switch c {
	case Zstd:
		return "zstd"
	case Snappy:
		return "snappy"
	case None:
		return "none"
	}
	return "invalid"
}

// ParseCompression returns the compression with the given name.
func ParseCompression(name string) (Compression, error) {
	for c := Zstd; c <= None; c++ {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, fmt.Errorf("columnar: unknown compression %q: want zstd, snappy or none", name)
}

func (c Compression) codec() format.CompressionCodec {
	switch c {
	case Zstd:
		return format.Zstd
	case Snappy:
		return format.Snappy
	}
	return format.Uncompressed
}

// Options are the same for all files of a dataset.
type Options struct {
	Compression Compression
	Metadata    map[string]string // further key-value metadata of the file
}

// PageRows is how many rows a data page holds at most, except for pages that
// hold one value or none for the whole chunk.
const PageRows = 1 << 16

// Encoder turns the columns of row groups into Parquet bytes. It reuses its
// buffers and is not safe for concurrent use: keep one per worker. The result
// depends on nothing but the arguments of the call.
type Encoder struct {
	table *schema.Table
	codec format.CompressionCodec
	zstd  *zstd.Encoder

	out        []byte // pages of the chunk being made
	page       []byte // page before compression
	compressed []byte

	index  []uint32 // dictionary positions of a column, or levels of a list
	levels []uint32
	lists  []int64
	ints   intSet
	words  stringSet
}

// NewEncoder returns an encoder for row groups of a table.
func NewEncoder(t *schema.Table, o Options) *Encoder {
	e := &Encoder{table: t, codec: o.Compression.codec()}
	if e.codec == format.Zstd {
		// The options are constant and valid, so there is no error.
		e.zstd, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	}
	return e
}

// Use makes the encoder one for another table.
func (e *Encoder) Use(t *schema.Table) { e.table = t }

// Encode encodes one row group. The columns are in the order of the table. The
// first, trace_id, is left empty where the file holds one trace, whose ID
// Close fills in. Errors name table and column.
func (e *Encoder) Encode(rows int, cols []Vector) (*Chunk, error) {
	if len(cols) != len(e.table.Columns) {
		return nil, fmt.Errorf("columnar: table %s has %d columns, not %d", e.table.Name, len(e.table.Columns), len(cols))
	}
	c := chunks.Get()
	c.table, c.rows, c.cols = e.table, rows, c.cols[:0]
	e.out = c.buf[:0]
	defer func() { e.out = nil }()
	for i := range cols {
		start := len(e.out)
		col, err := e.column(rows, i, &cols[i])
		if err != nil {
			c.buf = e.out[:0]
			chunks.Put(c)
			return nil, err
		}
		col.end = len(e.out)
		col.start = start
		c.cols = append(c.cols, col)
	}
	c.buf = e.out
	for i := range c.cols {
		c.cols[i].data = c.buf[c.cols[i].start:c.cols[i].end]
	}
	return c, nil
}

// EncodeColumn encodes one column of a row group, so that a caller with many
// rows can drop each column before it makes the next. NewChunk joins them.
func (e *Encoder) EncodeColumn(rows, col int, v *Vector) (*Column, error) {
	if col < 0 || col >= len(e.table.Columns) {
		return nil, fmt.Errorf("columnar: table %s has no column %d", e.table.Name, col)
	}
	c, err := e.column(rows, col, v)
	if err == nil {
		c.data = slices.Clone(e.out)
	}
	e.out = e.out[:0]
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// column appends one column to e.out.
func (e *Encoder) column(rows, col int, v *Vector) (Column, error) {
	c := Column{table: e.table, rows: rows, col: col}
	decl := &e.table.Columns[col]
	if rows < 0 || rows > math.MaxInt32 {
		return c, e.fail(decl, "%d rows do not fit a row group", rows)
	}
	if col == 0 && (v == nil || len(v.Vals) == 0) {
		return c, e.traceID(&c)
	}
	w := &chunkWriter{e: e, cells: cells{decl: decl, rows: rows, v: v}, base: len(e.out)}
	if err := w.check(); err != nil {
		return c, e.fail(decl, "%w", err)
	}
	var err error
	switch {
	case decl.Type == schema.Intervals:
		err = w.intervals()
	case w.values() == 0:
		err = w.empty()
	case decl.Type == schema.String:
		err = w.strings()
	case decl.Type == schema.Bool:
		err = w.bools()
	default:
		err = w.numbers()
	}
	if err != nil {
		return c, e.fail(decl, "%w", err)
	}
	c.leaves = w.leaves
	c.sorted = decl.Name == sortColumn && w.ascending()
	return c, nil
}

func (e *Encoder) fail(c *schema.Column, text string, args ...any) error {
	return fmt.Errorf("columnar: table %s, column %s: "+text, append([]any{e.table.Name, c.Name}, args...)...)
}

var errPageSize = errors.New("a page is larger than the format can hold")

// emit appends one page to e.out and returns its size with the header before
// and after compression.
func (e *Encoder) emit(h *format.PageHeader, body []byte, codec format.CompressionCodec) (raw, stored int, err error) {
	if len(body) > math.MaxInt32/2 {
		return 0, 0, errPageSize
	}
	packed := body
	switch codec {
	case format.Zstd:
		e.compressed = e.appendZstd(e.compressed[:0], body)
		packed = e.compressed
	case format.Snappy:
		if n := snappy.MaxEncodedLen(len(body)); cap(e.compressed) < n {
			e.compressed = make([]byte, n)
		}
		packed = snappy.Encode(e.compressed[:cap(e.compressed)], body)
	}
	h.UncompressedPageSize, h.CompressedPageSize = int32(len(body)), int32(len(packed))
	head := compact{b: e.out}
	head.pageHeader(h)
	n := len(head.b) - len(e.out)
	e.out = append(head.b, packed...)
	return n + len(body), n + len(packed), nil
}
