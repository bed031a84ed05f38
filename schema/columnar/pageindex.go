package columnar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// pageIndex appends the column indexes and the offset indexes, each kind
// together, so that a reader can load all with two requests. They follow the row
// groups of the file.
func (f *File) pageIndex(w *compact) {
	for g, leaves := range f.pages {
		for i := range leaves {
			at := len(w.b)
			if w.columnIndex(&leaves[i]) {
				c := &f.groups[g].Columns[i]
				c.ColumnIndexOffset, c.ColumnIndexLength = f.at+int64(at), int32(len(w.b)-at)
			}
		}
	}
	for g, leaves := range f.pages {
		for i := range leaves {
			at := len(w.b)
			w.offsetIndex(&leaves[i])
			c := &f.groups[g].Columns[i]
			c.OffsetIndexOffset, c.OffsetIndexLength = f.at+int64(at), int32(len(w.b)-at)
		}
	}
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
