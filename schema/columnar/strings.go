package columnar

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// pageBytes is about how many bytes of text go into one page without a
// dictionary.
const pageBytes = 4 << 20

// strings writes a column of strings.
func (w *chunkWriter) strings() error {
	set := &w.e.words
	set.reset(len(w.v.Dict))
	defer func() { set.reset(0); clear(set.pages[:cap(set.pages)]) }()
	n := len(w.v.Vals)
	w.e.index = slices.Grow(w.e.index[:0], n)[:n]
	for s := w.next(span{}, PageRows); s.r0 < s.r1; s = w.next(s, PageRows) {
		if !set.index(w.e.index[s.k0:s.k1], w.v.Vals[s.k0:s.k1], w.v.Dict) {
			return errPosition(w.v.Dict)
		}
	}
	for _, c := range set.used {
		if err := checkText(w.v.Dict[c]); err != nil {
			return err
		}
	}
	var whole stringRange
	for _, p := range set.pages {
		whole.merge(p)
	}
	l := w.leaf(format.ByteArray, w.e.codec, w.decl.Name)
	var err error
	if worthDictionary(n, len(set.used), set.bytes) {
		err = w.coded(l)
	} else {
		err = w.plain(l)
	}
	if err != nil {
		return err
	}
	w.finish(l, storedStrings(whole.lo, whole.hi))
	return nil
}

// worthDictionary says whether n values of which d are distinct, with so many
// bytes, are better stored as a dictionary. Readers load a dictionary whole,
// so one that saves little costs them.
func worthDictionary(n, d, bytes int) bool {
	switch {
	case bytes > math.MaxInt32/4:
		return false
	case bytes > 1<<20:
		return n >= 2*d
	}
	return d <= 1000 || 10*d <= 7*n
}

// coded writes the dictionary and the positions in e.index.
func (w *chunkWriter) coded(l *leaf) error {
	set := &w.e.words
	p := w.e.page[:0]
	for _, c := range set.used {
		x := w.v.Dict[c]
		p = binary.LittleEndian.AppendUint32(p, uint32(len(x)))
		p = append(p, x...)
	}
	w.e.page = p
	if err := w.dictionary(l, len(set.used), p); err != nil {
		return err
	}
	width := dictWidth(len(set.used))
	i := 0
	for s := w.next(span{}, PageRows); s.r0 < s.r1; s = w.next(s, PageRows) {
		w.begin(s)
		w.e.page = append(w.e.page, byte(width))
		w.e.page = appendHybrid(w.e.page, w.e.index[s.k0:s.k1], width)
		var b bounds
		if r := set.pages[i]; r.ok {
			b = storedStrings(r.lo, r.hi)
		}
		if err := w.end(l, format.RLEDictionary, s, b); err != nil {
			return err
		}
		i++
	}
	return nil
}

// plain writes the strings one by one.
func (w *chunkWriter) plain(l *leaf) error {
	for s := w.nextPlain(span{}); s.r0 < s.r1; s = w.nextPlain(s) {
		w.begin(s)
		var r stringRange
		p := w.e.page
		for _, c := range w.v.Vals[s.k0:s.k1] {
			x := w.v.Dict[c]
			p = binary.LittleEndian.AppendUint32(p, uint32(len(x)))
			p = append(p, x...)
			r.add(x)
		}
		w.e.page = p
		var b bounds
		if r.ok {
			b = storedStrings(r.lo, r.hi)
		}
		if err := w.end(l, format.Plain, s, b); err != nil {
			return err
		}
	}
	return nil
}

// nextPlain returns the span behind s, cut where it holds enough text.
func (w *chunkWriter) nextPlain(s span) span {
	s = w.next(s, PageRows)
	n := 0
	for k := s.k0; k < s.k1; k++ {
		if n += 4 + len(w.v.Dict[w.v.Vals[k]]); n > pageBytes && k > s.k0 {
			s.k1 = k
			s.r1 = k // the row of value k opens the next page
			if !w.dense {
				s.r1 = int(w.v.Rows[k])
			}
			break
		}
	}
	return s
}
