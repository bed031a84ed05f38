package columnar

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tracelake/schema"
)

const magic = "PAR1"

// sortColumn is the column that tables with an order are sorted by.
const sortColumn = "start_ns"

// File is one Parquet file being written. It is not safe for concurrent use.
type File struct {
	w      io.WriterAt
	table  *schema.Table
	meta   map[string]string
	at     int64  // where the next byte goes
	held   []byte // the last bytes before at, not written yet
	rows   int64
	groups []rowGroup
	pages  [][]leaf // per row group: what the page index says
	ids    []int64  // places of the trace ID
	err    error    // first error; the file is of no use after it
}

// Create starts a file for a table. The file is written from offset 0 with
// WriteAt only, so an *os.File must not be open for appending. The caller
// closes and syncs w.
func Create(w io.WriterAt, t *schema.Table, o Options) (*File, error) {
	f := &File{w: w, table: t, meta: o.Metadata}
	if len(t.Columns) == 0 || t.Columns[0].Name != schema.TraceIDColumn {
		return nil, fmt.Errorf("columnar: table %s does not start with %s", t.Name, schema.TraceIDColumn)
	}
	return f, f.write([]byte(magic))
}

// heldBytes is how much of a file is kept back, so that a small one is written at
// once.
const heldBytes = 64 << 10

func (f *File) write(b []byte) error {
	if len(f.held)+len(b) > heldBytes {
		if err := f.flush(); err != nil {
			return err
		}
	}
	if f.err != nil {
		return f.err
	}
	if len(b) > heldBytes {
		_, f.err = f.w.WriteAt(b, f.at)
	} else {
		f.held = append(f.held, b...)
	}
	f.at += int64(len(b))
	return f.err
}

// flush writes what is kept back.
func (f *File) flush() error {
	if f.err == nil && len(f.held) > 0 {
		_, f.err = f.w.WriteAt(f.held, f.at-int64(len(f.held)))
		f.held = f.held[:0]
	}
	return f.err
}

// patch writes over what was written before.
func (f *File) patch(b []byte, at int64) error {
	if i := at - (f.at - int64(len(f.held))); i >= 0 {
		copy(f.held[i:], b)
		return nil
	}
	_, err := f.w.WriteAt(b, at)
	return err
}

// Append writes an encoded row group behind those before. The chunk must not
// be used afterwards: its memory serves the next Encode. A chunk without rows
// leaves no trace.
func (f *File) Append(c *Chunk) error {
	if f.err != nil {
		return f.err
	}
	if c.table == nil || c.table.Name != f.table.Name || len(c.cols) != len(f.table.Columns) {
		return fmt.Errorf("columnar: a row group of another table appended to %s", f.table.Name)
	}
	defer c.release()
	if c.rows == 0 {
		return nil
	}
	g := rowGroup{NumRows: int64(c.rows), FileOffset: f.at}
	start := f.at
	leaves := make([]leaf, 0, len(c.cols)+len(c.cols)/8) // lists have two
	for i := range c.cols {
		col := &c.cols[i]
		for _, l := range col.leaves {
			l.moveTo(start)
			if i == 0 && l.idAt > 0 {
				f.ids = append(f.ids, start+int64(l.idAt))
			}
			g.TotalByteSize += l.meta.TotalUncompressedSize
			g.TotalCompressedSize += l.meta.TotalCompressedSize
			leaves = append(leaves, l)
		}
		if col.sorted && strings.HasPrefix(f.table.Order, sortColumn) {
			g.SortingColumns = thrift.Slice[format.SortingColumn]{{ColumnIdx: int32(len(leaves) - 1)}}
		}
		start += int64(len(col.data))
	}
	f.groups, f.pages = append(f.groups, g), append(f.pages, leaves)
	f.rows += int64(c.rows)
	if c.buf != nil {
		return f.write(c.buf)
	}
	for i := range c.cols {
		if err := f.write(c.cols[i].data); err != nil {
			return err
		}
	}
	return nil
}

// moveTo makes the offsets of a chunk count from the start of the file, given
// where its column starts.
func (l *leaf) moveTo(at int64) {
	if len(l.meta.EncodingStats) > 0 && l.meta.EncodingStats[0].PageType == format.DictionaryPage {
		l.meta.DictionaryPageOffset += at
	}
	l.meta.DataPageOffset += at
	for i := range l.pages {
		l.pages[i].offset += at
	}
}

// Close fills in the trace ID, which must be schema.TraceIDLen bytes long, or
// empty where every row group came with its own, and writes page index and
// footer. Keys of extra replace those of the options. It
// returns the rows and the bytes of the file and does not close the output.
func (f *File) Close(traceID string, extra map[string]string) (rows, bytes int64, err error) {
	if f.err != nil {
		return 0, 0, f.err
	}
	switch own := len(f.groups) - len(f.ids); {
	case traceID == "" && len(f.ids) == 0:
	case own > 0:
		return 0, 0, fmt.Errorf("columnar: %d row groups of %s have trace IDs of their own", own, f.table.Name)
	default:
		if err := checkID(traceID); err != nil {
			return 0, 0, err
		}
	}
	id := []byte(traceID)
	for g, at := range f.ids {
		if err := f.patch(id, at); err != nil {
			return 0, 0, err
		}
		l := &f.pages[g][0]
		b := bounds{id, id, true, true}
		l.meta.Statistics.setBounds(b)
		for i := range l.pages {
			l.pages[i].bounds = b
		}
	}
	further := maps.Clone(f.meta)
	if further == nil {
		further = map[string]string{}
	}
	maps.Copy(further, extra)
	if err := f.finish(fileMetadata(f.table, further, traceID)); err != nil {
		return 0, 0, err
	}
	rows, bytes = f.rows, f.at
	f.err = errClosed
	return rows, bytes, nil
}

// finish writes everything behind the row groups.
func (f *File) finish(meta map[string]string) error {
	for g := range f.groups {
		cols := make([]columnChunk, len(f.pages[g]))
		for i := range cols {
			cols[i].MetaData = f.pages[g][i].meta
		}
		f.groups[g].Columns = cols
	}
	tail := compact{}
	f.pageIndex(&tail)
	elements, leaves := schemaElements(f.table)
	md := fileMetaData{
		Version: 2, Schema: elements, NumRows: f.rows, RowGroups: f.groups, CreatedBy: "tracelake",
		KeyValueMetadata: keyValues(meta),
	}
	for range leaves {
		md.ColumnOrders = append(md.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	start := len(tail.b)
	tail.footer(&md)
	b := binary.LittleEndian.AppendUint32(tail.b, uint32(len(tail.b)-start))
	if err := f.write(append(b, magic...)); err != nil {
		return err
	}
	return f.flush()
}

// keyValues returns the metadata in the order of the keys, so that the same
// input makes the same bytes.
func keyValues(m map[string]string) (kv []format.KeyValue) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		kv = append(kv, format.KeyValue{Key: k, Value: m[k]})
	}
	return kv
}
