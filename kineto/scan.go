package kineto

import (
	"encoding/binary"
	"math/bits"
)

// Results of a scan that are not a position.
const (
	short = -1 // the text ends before the value does
	bad   = -2 // not JSON
	deep  = -3 // nested deeper than maxDepth
)

func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8 : i+8]) }

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// zeroByte marks the zero bytes of x; the lowest mark is exact.
func zeroByte(x uint64) uint64 { return (x - ones) & ^x & highs }

// stringEnd returns the position of the quote that closes the string whose
// first byte stands at i, and whether a backslash stands before it. b must be
// readable for pad bytes behind end.
func stringEnd(b []byte, i, end int) (q int, escaped bool) {
	for i < end {
		w := load64(b, i)
		m := zeroByte(w^(ones*'"')) | zeroByte(w^(ones*'\\'))
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if i >= end {
			return short, escaped
		}
		if b[i] == '"' {
			return i, escaped
		}
		escaped = true
		i += 2
	}
	return short, escaped
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func skipSpace(b []byte, i, end int) int {
	for i < end && isSpace(b[i]) {
		i++
	}
	return i
}

// isDelim reports whether c may follow a number or word.
func isDelim(c byte) bool { return c == ',' || c == '}' || c == ']' || isSpace(c) }

// skipNested returns the end of the array or object that starts at i. Brackets
// must match; what stands between them is checked elsewhere.
func skipNested(b []byte, i, end int) int {
	var open [(maxDepth + 63) / 64]uint64 // 1 bits are objects
	d := 0
	for i < end {
		switch b[i] {
		case '"':
			q, _ := stringEnd(b, i+1, end)
			if q < 0 {
				return q
			}
			i = q
		case '{', '[':
			if d == maxDepth {
				return deep
			}
			if b[i] == '{' {
				open[d>>6] |= 1 << (d & 63)
			} else {
				open[d>>6] &^= 1 << (d & 63)
			}
			d++
		case '}', ']':
			d--
			if d < 0 || (open[d>>6]>>(d&63)&1 == 1) != (b[i] == '}') {
				return bad
			}
			if d == 0 {
				return i + 1
			}
		}
		i++
	}
	return short
}

// skipValue returns the end of the value that starts at i: a string, a nested
// value, or a number or word up to the next delimiter.
func skipValue(b []byte, i, end int) int {
	if i >= end {
		return short
	}
	switch b[i] {
	case '"':
		q, _ := stringEnd(b, i+1, end)
		if q < 0 {
			return q
		}
		return q + 1
	case '{', '[':
		return skipNested(b, i, end)
	}
	return skipWord(b, i, end)
}

// skipWord returns the end of a number or word, which may be malformed. A word
// holds no quote, bracket or colon; an empty one is bad.
func skipWord(b []byte, i, end int) int {
	s := i
	for i < end {
		switch c := b[i]; {
		case isDelim(c):
			if i == s {
				return bad
			}
			return i
		case c == '"' || c == '{' || c == '[' || c == ':' || c < ' ':
			return bad
		}
		i++
	}
	return short
}
