package columnar

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"
)

// maxStatBytes is how much of a string goes into statistics. Longer ones are
// cut, and marked as not exact.
const maxStatBytes = 64

// bounds are the extremes of a page or a column chunk, as stored.
type bounds struct {
	min, max           []byte
	minExact, maxExact bool
}

// intBounds returns the extremes of v, which must not be empty.
func intBounds(v []int64) (lo, hi int64) {
	lo, hi = v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

func storedInts(lo, hi int64) bounds {
	b := make([]byte, 16)
	binary.LittleEndian.PutUint64(b, uint64(lo))
	binary.LittleEndian.PutUint64(b[8:], uint64(hi))
	return bounds{b[:8:8], b[8:], true, true}
}

// floatBounds returns the extremes of the doubles whose bits are in v. It
// reports false when there are none or when one is a NaN: engines disagree on
// how a NaN compares, so a range that leaves it out could lose its row.
func floatBounds(v []int64) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, b := range v {
		f := math.Float64frombits(uint64(b))
		if f != f {
			return 0, 0, false
		}
		lo, hi = min(lo, f), max(hi, f)
	}
	return lo, hi, len(v) > 0
}

// storedFloats widens zeros, because -0 and 0 are equal but stored apart.
func storedFloats(lo, hi float64) bounds {
	if lo == 0 {
		lo = math.Copysign(0, -1)
	}
	if hi == 0 {
		hi = 0
	}
	return storedInts(int64(math.Float64bits(lo)), int64(math.Float64bits(hi)))
}

func storedBools(lo, hi int64) bounds {
	return bounds{[]byte{byte(lo)}, []byte{byte(hi)}, true, true}
}

// storedStrings cuts long strings so that the range still holds both.
func storedStrings(lo, hi string) bounds {
	var b bounds
	b.min, b.minExact = []byte(lo), true
	b.max, b.maxExact = []byte(hi), true
	if len(lo) > maxStatBytes {
		b.min, b.minExact = []byte(cutRunes(lo)), false
	}
	if len(hi) > maxStatBytes {
		if up, ok := roundUp(cutRunes(hi)); ok {
			b.max, b.maxExact = []byte(up), false
		}
	}
	return b
}

// cutRunes returns the longest start of s, at most maxStatBytes long, that
// cuts no character.
func cutRunes(s string) string {
	n := maxStatBytes
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// roundUp returns a short string that is greater than every string that starts
// with s. There is none when s is empty or holds only the last character.
func roundUp(s string) (string, bool) {
	for len(s) > 0 {
		r, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
		if r++; r == 0xd800 {
			r = 0xe000 // surrogates are no characters
		}
		if r <= utf8.MaxRune {
			return s + string(r), true
		}
	}
	return "", false
}

// stringRange keeps the extremes of strings. The strings are not copied.
type stringRange struct {
	lo, hi string
	ok     bool
}

func (r *stringRange) add(s string) {
	if !r.ok {
		r.lo, r.hi, r.ok = s, s, true
		return
	}
	if strings.Compare(s, r.lo) < 0 {
		r.lo = s
	} else if strings.Compare(s, r.hi) > 0 {
		r.hi = s
	}
}

func (r *stringRange) merge(o stringRange) {
	if o.ok {
		r.add(o.lo)
		r.add(o.hi)
	}
}
