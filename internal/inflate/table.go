package inflate

import "math/bits"

// An entry of a table says what the next bits of the stream mean:
//
//	bits  0–7   bits to consume, those of the extra value included
//	bits  8–11  bits of the code alone; for literals, how many there are
//	bits 12–15  flags
//	bits 16–31  one or two literals, the base of a length or a distance, or where
//	            a second table begins
//
// A second table is looked up with the bits behind those of the first one.
type entry = uint32

const (
	flagLiteral = 1 << 15
	flagRare    = 1 << 14 // neither literal nor value: a second table, the end of the block or no code at all
	flagSecond  = 1 << 13 // with flagRare
	flagEnd     = 1 << 12 // with flagRare

	invalid entry = flagRare
)

const (
	litBits  = 11 // bits of the first table of literals and lengths
	distBits = 9
	precode  = 7

	// A complete code of 288 symbols of at most 15 bits needs 2342 entries with a
	// first table of 11 bits, one of 32 symbols 594 with one of 9 bits.
	litSize  = 1 << 12
	distSize = 1 << 10

	maxCode   = 15 // bits of a code
	endSymbol = 256
)

var (
	litSymbols  [288]entry
	distSymbols [32]entry
	lenSymbols  [19]entry
)

func init() {
	for i := range endSymbol {
		litSymbols[i] = flagLiteral | 1<<8 | uint32(i)<<16
	}
	litSymbols[endSymbol] = flagRare | flagEnd
	length := uint32(3)
	for i := endSymbol + 1; i < 285; i++ {
		extra := uint32(max(0, (i-261)/4))
		litSymbols[i] = length<<16 | extra
		length += 1 << extra
	}
	litSymbols[285] = 258 << 16
	litSymbols[286], litSymbols[287] = invalid, invalid
	dist := uint32(1)
	for i := range 30 {
		extra := uint32(max(0, i/2-1))
		distSymbols[i] = dist<<16 | extra
		dist += 1 << extra
	}
	distSymbols[30], distSymbols[31] = invalid, invalid
	for i := range lenSymbols {
		lenSymbols[i] = uint32(i) << 16
	}
}

// build fills a table whose first part has 1<<first entries from the lengths
// of the codes of symbols. It reports false for lengths that are no code: a set
// of codes has to be complete, or to hold a single code of one bit, or none.
func build(tab []entry, first int, lens []uint8, symbols []entry) bool {
	var count [maxCode + 1]int
	for _, l := range lens {
		count[l]++
	}
	count[0] = 0
	longest := maxCode
	for longest > 0 && count[longest] == 0 {
		longest--
	}
	var next [maxCode + 2]int // where symbols of a length stand in order
	left := 1
	for l := 1; l <= maxCode; l++ {
		left = left<<1 - count[l]
		if left < 0 {
			return false
		}
		next[l+1] = next[l] + count[l]
	}
	if left > 0 && longest > 0 && (longest != 1 || count[1] != 1) {
		return false
	}
	if left > 0 {
		fill(tab[:1<<first], 0, 1, invalid)
	}
	var order [288]uint16
	for s, l := range lens {
		if l != 0 {
			order[next[l]] = uint16(s)
			next[l]++
		}
	}
	code, total := uint16(0), next[longest]
	prefix, second, width := -1, 1<<first, 0
	for i, l := 0, 1; i < total; i++ {
		s := order[i]
		for ; int(lens[s]) > l; l++ {
			code <<= 1
		}
		e := symbols[s]
		at := int(bits.Reverse16(code) >> (16 - l))
		code++
		if l <= first {
			fill(tab[:1<<first], at, 1<<l, withLength(e, uint32(l)))
			count[l]--
			continue
		}
		if p := at & (1<<first - 1); p != prefix {
			if prefix >= 0 {
				second += 1 << width
			}
			prefix, width = p, secondWidth(&count, l, first, longest)
			if second+1<<width > len(tab) {
				return false // no complete code comes here
			}
			tab[p] = flagRare | flagSecond | entry(second)<<16 | entry(width)<<8 | entry(first)
		}
		fill(tab[second:second+1<<width], at>>first, 1<<(l-first), withLength(e, uint32(l-first)))
		count[l]--
	}
	return true
}

// secondWidth returns how many bits the second table needs whose first code
// has l bits; count holds how many codes of each length are still to come.
func secondWidth(count *[maxCode + 1]int, l, first, longest int) int {
	left := 1 << (l - first)
	for ; l < longest; l++ {
		left -= count[l]
		if left <= 0 {
			break
		}
		left <<= 1
	}
	return l - first
}

func withLength(e, l uint32) entry {
	if e&flagLiteral == 0 {
		e += l << 8
	}
	return e + l
}

func fill(tab []entry, from, step int, e entry) {
	for i := from; i < len(tab); i += step {
		tab[i] = e
	}
}

// pairLiterals lets an entry of the first table stand for two literals where
// the bits of both fit.
func pairLiterals(tab *[litSize]entry) {
	// From the end, as the second literal is looked up in front of the first.
	for i := 1<<litBits - 1; i >= 0; i-- {
		a := tab[i]
		if a&flagLiteral == 0 {
			continue
		}
		n := a & 0xff
		b := tab[(i>>n)&(litSize-1)]
		if b&flagLiteral != 0 && n+b&0xff <= litBits {
			tab[i] = flagLiteral | 2<<8 | (n + b&0xff) | a&0xff0000 | b&0xff0000<<8
		}
	}
}
