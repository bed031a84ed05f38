package columnar

import (
	"github.com/parquet-go/parquet-go/format"
)

// intervals writes a column of lists as its two leaves. Both have the same
// levels; the repetition level is 0 where a list starts, and the definition
// level says null, empty or value.
func (w *chunkWriter) intervals() error {
	names := [2]string{"offset_ns", "dur_ns"}
	for field, name := range names {
		l := w.leaf(format.Int64, w.e.codec, w.decl.Name, "list", "element", name)
		l.meta.NumValues = 0
		var whole extremes
		for s := w.nextLists(span{}); s.r0 < s.r1; s = w.nextLists(s) {
			vals := w.levels(s, field)
			n := len(w.e.levels)
			b, _ := whole.add(vals, false)
			l.meta.NumValues += int64(n)
			w.e.page = appendDelta(w.e.page, vals)
			err := w.data(l, format.DeltaBinaryPacked, n, page{
				firstRow: int64(s.r0), nulls: int64(n - len(vals)), values: len(vals), bounds: b,
			})
			if err != nil {
				return err
			}
		}
		w.finish(l, whole.stored(false))
	}
	return nil
}

// nextLists returns the span behind s, cut so that long lists make no page too
// large. A list is never cut: pages must start with a row.
func (w *chunkWriter) nextLists(s span) span {
	s = w.next(s, PageRows)
	n := 0
	for k := s.k0; k < s.k1; k++ {
		if n += len(w.v.Lists[k]); n > PageRows && k > s.k0 {
			s.k1 = k
			s.r1 = k
			if !w.dense {
				s.r1 = int(w.v.Rows[k])
			}
			break
		}
	}
	return s
}

// levels writes both kinds of levels of a span to e.page and returns the
// values of a field.
func (w *chunkWriter) levels(s span, field int) []int64 {
	rep, def, vals := w.e.index[:0], w.e.levels[:0], w.e.lists[:0]
	empty, width := uint32(0), uint(1) // levels: empty, value
	if w.decl.Nullable {
		empty, width = 1, 2 // levels: null, empty, value
	}
	k := s.k0
	for r := s.r0; r < s.r1; r++ {
		if !w.dense && (k == s.k1 || int(w.v.Rows[k]) != r) {
			rep, def = append(rep, 0), append(def, 0)
			continue
		}
		list := w.v.Lists[k]
		k++
		if len(list) == 0 {
			rep, def = append(rep, 0), append(def, empty)
		}
		for i, x := range list {
			rep, def = append(rep, uint32(min(i, 1))), append(def, empty+1)
			if field == 0 {
				vals = append(vals, x.OffsetNS)
			} else {
				vals = append(vals, x.DurNS)
			}
		}
	}
	w.e.index, w.e.levels, w.e.lists = rep, def, vals
	p := appendSized(w.e.page[:0], func(dst []byte) []byte { return appendHybrid(dst, rep, 1) })
	w.e.page = appendSized(p, func(dst []byte) []byte { return appendHybrid(dst, def, width) })
	return vals
}
