package columnar

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"tracelake/schema"
)

// A column of numbers with at most maxDistinct different values, each used
// some times, is stored as a dictionary.
const maxDistinct = 2048

// numbers writes a column of integers or doubles.
func (w *chunkWriter) numbers() error {
	vals := w.v.Vals
	w.e.index = slices.Grow(w.e.index[:0], len(vals))[:len(vals)]
	limit := min(maxDistinct, 1+len(vals)/4)
	dict := w.e.ints.index(w.e.index, vals, limit)
	float := w.decl.Type == schema.Float64
	if dict != nil && !float && len(dict) > len(vals)/16 {
		// Few enough values that it is cheap to see which is smaller.
		w.e.page = appendDelta(w.e.page[:0], vals)
		delta := len(w.e.page)
		w.e.page = appendHybrid(w.e.page[:0], w.e.index, dictWidth(len(dict)))
		if len(w.e.page)+8*len(dict) >= delta {
			dict = nil
		}
	}
	l := w.leaf(physical(w.decl.Type), w.e.codec, w.decl.Name)
	enc := format.DeltaBinaryPacked
	switch {
	case dict != nil:
		enc = format.RLEDictionary
		l.meta.DictionaryPageOffset = 0
		w.e.page = appendWords(w.e.page[:0], dict)
		if err := w.dictionary(l, len(dict), w.e.page); err != nil {
			return err
		}
	case float:
		enc = format.Plain
	}
	whole, exact := extremes{}, true
	for s := w.next(span{}, PageRows); s.r0 < s.r1; s = w.next(s, PageRows) {
		w.begin(s)
		part := vals[s.k0:s.k1]
		switch enc {
		case format.RLEDictionary:
			width := dictWidth(len(dict))
			w.e.page = append(w.e.page, byte(width))
			w.e.page = appendHybrid(w.e.page, w.e.index[s.k0:s.k1], width)
		case format.Plain:
			w.e.page = appendWords(w.e.page, part)
		default:
			w.e.page = appendDelta(w.e.page, part)
		}
		b, ok := whole.add(part, float)
		exact = exact && ok
		if err := w.end(l, enc, s, b); err != nil {
			return err
		}
	}
	if !exact {
		whole = extremes{}
	}
	w.finish(l, whole.stored(float))
	return nil
}

// dictWidth returns the bits that positions in a dictionary of n take. Not
// every reader likes a width of 0.
func dictWidth(n int) uint { return uint(max(1, bits.Len(uint(n-1)))) }

func appendWords(dst []byte, v []int64) []byte {
	o := len(dst)
	dst = slices.Grow(dst, 8*len(v))[:o+8*len(v)]
	for i, x := range v {
		binary.LittleEndian.PutUint64(dst[o+8*i:], uint64(x))
	}
	return dst
}

// extremes of the numbers of a chunk.
type extremes struct {
	ok         bool
	lo, hi     int64
	flow, fhig float64
}

// add widens x by a page and returns the bounds of the page. It reports false
// for a page whose values have no range.
func (x *extremes) add(v []int64, float bool) (bounds, bool) {
	if len(v) == 0 {
		return bounds{}, true
	}
	p := extremes{ok: true}
	if float {
		if p.flow, p.fhig, p.ok = floatBounds(v); !p.ok {
			return bounds{}, false
		}
	} else {
		p.lo, p.hi = intBounds(v)
	}
	if !x.ok {
		*x = p
	}
	x.lo, x.hi = min(x.lo, p.lo), max(x.hi, p.hi)
	x.flow, x.fhig = min(x.flow, p.flow), max(x.fhig, p.fhig)
	return p.stored(float), true
}

func (x *extremes) stored(float bool) bounds {
	switch {
	case !x.ok:
		return bounds{}
	case float:
		return storedFloats(x.flow, x.fhig)
	}
	return storedInts(x.lo, x.hi)
}

// bools writes a column of booleans, one bit each.
func (w *chunkWriter) bools() error {
	l := w.leaf(format.Boolean, w.e.codec, w.decl.Name)
	whole := extremes{}
	for s := w.next(span{}, PageRows); s.r0 < s.r1; s = w.next(s, PageRows) {
		w.begin(s)
		part := w.v.Vals[s.k0:s.k1]
		var b bounds
		if len(part) > 0 {
			whole.add(part, false)
			lo, hi := intBounds(part)
			if lo < 0 || hi > 1 {
				return errBool
			}
			b = storedBools(lo, hi)
		}
		for len(part) > 0 {
			var x byte
			n := min(8, len(part))
			for i, y := range part[:n] {
				x |= byte(y) << i
			}
			w.e.page = append(w.e.page, x)
			part = part[n:]
		}
		if err := w.end(l, format.Plain, s, b); err != nil {
			return err
		}
	}
	w.finish(l, storedBools(whole.lo, whole.hi))
	return nil
}
