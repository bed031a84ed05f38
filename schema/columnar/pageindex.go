package columnar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// writePageIndex writes the column indexes and the offset indexes, each kind
// together, so that a reader can load all with two requests.
func (f *File) writePageIndex() error {
	var buf bytes.Buffer
	enc := thrift.NewEncoder((&thrift.CompactProtocol{}).NewWriter(&buf))
	for g, leaves := range f.pages {
		for i := range leaves {
			index, ok := leaves[i].columnIndex()
			if !ok {
				continue
			}
			at := buf.Len()
			if err := enc.Encode(&index); err != nil {
				return err
			}
			c := &f.groups[g].Columns[i]
			c.ColumnIndexOffset, c.ColumnIndexLength = f.at+int64(at), int32(buf.Len()-at)
		}
	}
	for g, leaves := range f.pages {
		for i := range leaves {
			index, at := leaves[i].offsetIndex(), buf.Len()
			if err := enc.Encode(&index); err != nil {
				return err
			}
			c := &f.groups[g].Columns[i]
			c.OffsetIndexOffset, c.OffsetIndexLength = f.at+int64(at), int32(buf.Len()-at)
		}
	}
	return f.write(buf.Bytes())
}

func (l *leaf) offsetIndex() (x format.OffsetIndex) {
	for _, p := range l.pages {
		x.PageLocations = append(x.PageLocations, format.PageLocation{
			Offset: p.offset, CompressedPageSize: p.size, FirstRowIndex: p.firstRow,
		})
	}
	return x
}

// columnIndex reports false for a chunk with a page that has values but no
// range: the format has no way to say that.
func (l *leaf) columnIndex() (x format.ColumnIndex, ok bool) {
	for _, p := range l.pages {
		if p.values > 0 && p.bounds.min == nil {
			return x, false
		}
		x.NullPages = append(x.NullPages, p.values == 0)
		x.NullCounts = append(x.NullCounts, p.nulls)
		lo, hi := p.bounds.min, p.bounds.max
		if p.values == 0 {
			lo, hi = []byte{}, []byte{}
		}
		x.MinValues, x.MaxValues = append(x.MinValues, lo), append(x.MaxValues, hi)
	}
	x.BoundaryOrder = l.boundaryOrder()
	return x, true
}

// boundaryOrder says whether the extremes of the pages rise or fall.
func (l *leaf) boundaryOrder() format.BoundaryOrder {
	up, down := true, true
	var prev *page
	for i := range l.pages {
		p := &l.pages[i]
		if p.values == 0 {
			continue
		}
		if prev != nil {
			lo := compareStored(l.meta.Type, prev.bounds.min, p.bounds.min)
			hi := compareStored(l.meta.Type, prev.bounds.max, p.bounds.max)
			up = up && lo <= 0 && hi <= 0
			down = down && lo >= 0 && hi >= 0
		}
		prev = p
	}
	switch {
	case up:
		return format.Ascending
	case down:
		return format.Descending
	}
	return format.Unordered
}

// compareStored compares two values in PLAIN encoding.
func compareStored(t format.Type, a, b []byte) int {
	switch t {
	case format.Int64:
		return cmp.Compare(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
	case format.Double:
		return cmp.Compare(math.Float64frombits(binary.LittleEndian.Uint64(a)), math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return bytes.Compare(a, b)
}
