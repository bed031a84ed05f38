package columnar

import (
	"fmt"
	"io"
	"maps"
	"strconv"

	"tracelake/schema"
)

// Format is a file format for tables.
type Format uint8

// Formats.
const (
	Parquet Format = iota
	Arrow          // Arrow IPC file
)

// String returns the name used on the command line, which is also the suffix
// of the files without its dot.
func (f Format) String() string {
	switch f {
	case Parquet:
		return "parquet"
	case Arrow:
		return "arrow"
	}
	return "invalid"
}

// ParseFormat returns the format with the given name.
func ParseFormat(name string) (Format, error) {
	for f := Parquet; f <= Arrow; f++ {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("columnar: unknown format %q: want parquet or arrow", name)
}

// Stats tell what a file holds.
type Stats struct {
	Rows  int64
	Bytes int64
}

// TableWriter writes one table to one file of any format. It is not safe for
// concurrent use.
type TableWriter interface {
	// Append writes a row group. The columns are in the order of the table;
	// the first, trace_id, is ignored. Errors name table and column.
	Append(rows int, cols []Vector) error
	// Close completes the file with the ID of the trace that all rows belong
	// to. It does not close the output.
	Close(traceID string) (Stats, error)
}

// Create starts a file in the format. The trace ID may be empty for Parquet,
// where only Close needs it.
func (f Format) Create(w io.WriterAt, t *schema.Table, traceID string, o Options) (TableWriter, error) {
	switch f {
	case Parquet:
		return CreateParquet(w, t, o)
	case Arrow:
		return CreateArrow(w, t, traceID, o)
	}
	return nil, fmt.Errorf("columnar: invalid format %d", f)
}

// ParquetWriter is a TableWriter that also takes row groups encoded elsewhere:
// workers call Encode on encoders of their own, and one goroutine calls
// AppendChunk in the order of the rows.
type ParquetWriter struct {
	file    *File
	encoder *Encoder // made when first needed
	options Options
}

var _ TableWriter = (*ParquetWriter)(nil)

// CreateParquet starts a Parquet file; see Create.
func CreateParquet(w io.WriterAt, t *schema.Table, o Options) (*ParquetWriter, error) {
	f, err := Create(w, t, o)
	return &ParquetWriter{file: f, options: o}, err
}

// NewEncoder returns an encoder for the row groups of the file.
func (p *ParquetWriter) NewEncoder() *Encoder { return NewEncoder(p.file.table, p.options) }

// AppendChunk writes a row group; see File.Append.
func (p *ParquetWriter) AppendChunk(c *Chunk) error { return p.file.Append(c) }

// Append encodes and writes a row group.
func (p *ParquetWriter) Append(rows int, cols []Vector) error {
	if p.encoder == nil {
		p.encoder = p.NewEncoder()
	}
	c, err := p.encoder.Encode(rows, cols)
	if err != nil {
		return err
	}
	return p.file.Append(c)
}

// Close completes the file; see File.Close.
func (p *ParquetWriter) Close(traceID string) (Stats, error) {
	rows, bytes, err := p.file.Close(traceID, nil)
	return Stats{Rows: rows, Bytes: bytes}, err
}

func checkID(id string) error {
	if len(id) != schema.TraceIDLen {
		return fmt.Errorf("columnar: trace ID %q is not %d bytes long", id, schema.TraceIDLen)
	}
	return nil
}

// fileMetadata returns the key-value metadata of a file of either format.
func fileMetadata(t *schema.Table, further map[string]string, traceID string) map[string]string {
	m := map[string]string{}
	maps.Copy(m, further)
	m["tracelake.schema_version"] = strconv.Itoa(schema.Version)
	m["tracelake.table"] = t.Name
	if traceID != "" {
		m["tracelake.trace_id"] = traceID
	}
	return m
}
