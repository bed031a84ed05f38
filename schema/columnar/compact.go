package columnar

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/format"
)

// compact appends structs in the compact protocol of Thrift, in which the
// footers and page headers of Parquet files are. A small trace is little else, so
// it does without reflection and memory of its own.
type compact struct {
	b    []byte
	last int // field before, in the struct that is being written
}

// Types of fields.
const (
	typeTrue   = 1
	typeFalse  = 2
	typeBool   = 2 // of the members of a list, which are bytes, 1 for true
	typeInt32  = 5
	typeInt64  = 6
	typeBinary = 8
	typeList   = 9
	typeStruct = 12
)

// field starts a field. Those of a struct come in order, no more than 15 apart.
func (w *compact) field(id, typ int) {
	w.b = append(w.b, byte((id-w.last)<<4|typ))
	w.last = id
}

func (w *compact) int32(id int, v int32) {
	w.field(id, typeInt32)
	w.value(int64(v))
}

func (w *compact) int64(id int, v int64) {
	w.field(id, typeInt64)
	w.value(v)
}

// value is an integer that is a member of a list, or follows its field.
func (w *compact) value(v int64) { w.b = binary.AppendVarint(w.b, v) }

func (w *compact) flag(id int, v bool) {
	if v {
		w.field(id, typeTrue)
		return
	}
	w.field(id, typeFalse)
}

func (w *compact) text(id int, v string) {
	w.field(id, typeBinary)
	w.member(v)
}

func (w *compact) bytes(id int, v []byte) {
	w.field(id, typeBinary)
	w.b = binary.AppendUvarint(w.b, uint64(len(v)))
	w.b = append(w.b, v...)
}

// member is a text of a list, or follows its field.
func (w *compact) member(v string) {
	w.b = binary.AppendUvarint(w.b, uint64(len(v)))
	w.b = append(w.b, v...)
}

// list starts a list of n members.
func (w *compact) list(id, typ, n int) {
	w.field(id, typeList)
	if n < 15 {
		w.b = append(w.b, byte(n<<4|typ))
		return
	}
	w.b = binary.AppendUvarint(append(w.b, byte(0xf0|typ)), uint64(n))
}

// open starts a struct that is a field, close ends it.
func (w *compact) open(id int) {
	w.field(id, typeStruct)
	w.last = 0
}

// item starts a struct that is a member of a list, close ends it.
func (w *compact) item() { w.last = 0 }

// close ends a struct that is the field with this id of the struct around it, or
// a member of the list with this id.
func (w *compact) close(id int) {
	w.b = append(w.b, 0)
	w.last = id
}

// pageHeader writes the header of a page.
func (w *compact) pageHeader(h *format.PageHeader) {
	w.last = 0
	w.int32(1, int32(h.Type))
	w.int32(2, h.UncompressedPageSize)
	w.int32(3, h.CompressedPageSize)
	if h.DataPageHeader.Valid {
		d := &h.DataPageHeader.V
		w.open(5)
		w.int32(1, d.NumValues)
		w.int32(2, int32(d.Encoding))
		w.int32(3, int32(d.DefinitionLevelEncoding))
		w.int32(4, int32(d.RepetitionLevelEncoding))
		w.open(5)
		w.int64(3, d.Statistics.NullCount)
		w.close(5)
		w.close(5)
	}
	if h.DictionaryPageHeader.Valid {
		d := &h.DictionaryPageHeader.V
		w.open(7)
		w.int32(1, d.NumValues)
		w.int32(2, int32(d.Encoding))
		w.close(7)
	}
	w.close(0)
}

// offsetIndex writes where the pages of a column chunk are.
func (w *compact) offsetIndex(l *leaf) {
	w.last = 0
	w.list(1, typeStruct, len(l.pages))
	for i := range l.pages {
		p := &l.pages[i]
		w.item()
		w.int64(1, p.offset)
		w.int32(2, p.size)
		w.int64(3, p.firstRow)
		w.close(1)
	}
	w.close(0)
}

// columnIndex writes what the pages of a column chunk hold. It writes nothing and
// reports false for a chunk with a page that has values but no range: the format
// has no way to say that.
func (w *compact) columnIndex(l *leaf) bool {
	for i := range l.pages {
		if p := &l.pages[i]; p.values > 0 && p.bounds.min == nil {
			return false
		}
	}
	w.last = 0
	w.list(1, typeBool, len(l.pages))
	for i := range l.pages {
		w.b = append(w.b, 0)
		if l.pages[i].values == 0 {
			w.b[len(w.b)-1] = 1
		}
	}
	w.list(2, typeBinary, len(l.pages))
	for i := range l.pages {
		w.member(string(l.pages[i].bounds.min)) // none, where there are no values
	}
	w.list(3, typeBinary, len(l.pages))
	for i := range l.pages {
		w.member(string(l.pages[i].bounds.max))
	}
	w.int32(4, int32(l.boundaryOrder()))
	w.list(5, typeInt64, len(l.pages))
	for i := range l.pages {
		w.value(l.pages[i].nulls)
	}
	w.close(0)
	return true
}

// footer writes what stands at the end of a file.
func (w *compact) footer(m *fileMetaData) {
	w.last = 0
	w.int32(1, m.Version)
	w.list(2, typeStruct, len(m.Schema))
	for i := range m.Schema {
		w.schemaElement(&m.Schema[i])
		w.close(2)
	}
	w.int64(3, m.NumRows)
	w.list(4, typeStruct, len(m.RowGroups))
	for i := range m.RowGroups {
		w.rowGroup(&m.RowGroups[i])
		w.close(4)
	}
	w.list(5, typeStruct, len(m.KeyValueMetadata))
	for _, x := range m.KeyValueMetadata {
		w.item()
		w.text(1, x.Key)
		w.text(2, x.Value)
		w.close(5)
	}
	w.text(6, m.CreatedBy)
	w.list(7, typeStruct, len(m.ColumnOrders))
	for range m.ColumnOrders {
		w.item()
		w.open(1) // the order that the type defines, the only one there is
		w.close(1)
		w.close(7)
	}
	w.close(0)
}

func (w *compact) schemaElement(e *format.SchemaElement) {
	w.item()
	if e.Type.Valid {
		w.int32(1, int32(e.Type.V))
	}
	if e.RepetitionType.Valid {
		w.int32(3, int32(e.RepetitionType.V))
	}
	w.text(4, e.Name)
	if e.NumChildren.Valid {
		w.int32(5, e.NumChildren.V)
	}
	if e.ConvertedType.Valid {
		w.int32(6, int32(e.ConvertedType.V))
	}
	kind := 0
	switch e.LogicalType.Value.(type) {
	case *format.StringType:
		kind = 1
	case *format.ListType:
		kind = 3
	default:
		return
	}
	w.open(10)
	w.open(kind)
	w.close(kind)
	w.close(10)
}

func (w *compact) rowGroup(g *rowGroup) {
	w.item()
	w.list(1, typeStruct, len(g.Columns))
	for i := range g.Columns {
		w.columnChunk(&g.Columns[i])
		w.close(1)
	}
	w.int64(2, g.TotalByteSize)
	w.int64(3, g.NumRows)
	if len(g.SortingColumns) > 0 {
		w.list(4, typeStruct, len(g.SortingColumns))
		for _, s := range g.SortingColumns {
			w.item()
			w.int32(1, s.ColumnIdx)
			w.flag(2, s.Descending)
			w.flag(3, s.NullsFirst)
			w.close(4)
		}
	}
	w.int64(5, g.FileOffset)
	w.int64(6, g.TotalCompressedSize)
}

func (w *compact) columnChunk(c *columnChunk) {
	w.item()
	w.int64(2, c.FileOffset)
	w.open(3)
	w.columnMetaData(&c.MetaData)
	w.close(3)
	if c.OffsetIndexOffset != 0 {
		w.int64(4, c.OffsetIndexOffset)
		w.int32(5, c.OffsetIndexLength)
	}
	if c.ColumnIndexOffset != 0 {
		w.int64(6, c.ColumnIndexOffset)
		w.int32(7, c.ColumnIndexLength)
	}
}

func (w *compact) columnMetaData(m *columnMetaData) {
	w.int32(1, int32(m.Type))
	w.list(2, typeInt32, len(m.Encoding))
	for _, e := range m.Encoding {
		w.value(int64(e))
	}
	w.list(3, typeBinary, len(m.PathInSchema))
	for _, name := range m.PathInSchema {
		w.member(name)
	}
	w.int32(4, int32(m.Codec))
	w.int64(5, m.NumValues)
	w.int64(6, m.TotalUncompressedSize)
	w.int64(7, m.TotalCompressedSize)
	w.int64(9, m.DataPageOffset)
	if m.DictionaryPageOffset != 0 {
		w.int64(11, m.DictionaryPageOffset)
	}
	s := &m.Statistics
	w.open(12)
	w.int64(3, s.NullCount)
	if s.MaxValue != nil {
		w.bytes(5, s.MaxValue)
	}
	if s.MinValue != nil {
		w.bytes(6, s.MinValue)
	}
	if s.IsMaxExact.Valid {
		w.flag(7, s.IsMaxExact.V)
	}
	if s.IsMinExact.Valid {
		w.flag(8, s.IsMinExact.V)
	}
	w.close(12)
	if len(m.EncodingStats) > 0 {
		w.list(13, typeStruct, len(m.EncodingStats))
		for _, x := range m.EncodingStats {
			w.item()
			w.int32(1, int32(x.PageType))
			w.int32(2, int32(x.Encoding))
			w.int32(3, x.Count)
			w.close(13)
		}
	}
}
