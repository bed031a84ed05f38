package columnar

import (
	"encoding/binary"
	"math/bits"
)

// Sizes of DELTA_BINARY_PACKED: the values that every writer uses.
const (
	deltaBlock = 128
	deltaMini  = 32
)

// appendDelta appends v in the DELTA_BINARY_PACKED encoding. Differences wrap
// around, as the format wants, so that every int64 can follow every other.
func appendDelta(dst []byte, v []int64) []byte {
	dst = binary.AppendUvarint(dst, deltaBlock)
	dst = binary.AppendUvarint(dst, deltaBlock/deltaMini)
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	if len(v) == 0 {
		return binary.AppendVarint(dst, 0)
	}
	dst = binary.AppendVarint(dst, v[0])
	prev := v[0]
	v = v[1:]
	var d [deltaBlock]uint64
	for len(v) > 0 {
		n := min(deltaBlock, len(v))
		least := v[0] - prev
		for k, x := range v[:n] {
			diff := x - prev
			prev = x
			d[k] = uint64(diff)
			least = min(least, diff)
		}
		v = v[n:]
		for k := range d[:n] {
			d[k] -= uint64(least)
		}
		clear(d[n:])
		dst = binary.AppendVarint(dst, least)
		dst = appendDeltaBlock(dst, &d, (n+deltaMini-1)/deltaMini)
	}
	return dst
}

// appendDeltaBlock appends the widths of a block and its first minis
// miniblocks; those behind hold no value and have width 0 and no bytes.
func appendDeltaBlock(dst []byte, d *[deltaBlock]uint64, minis int) []byte {
	var w [deltaBlock / deltaMini]byte
	for m := range w {
		var or uint64
		for _, x := range d[m*deltaMini : (m+1)*deltaMini] {
			or |= x
		}
		w[m] = byte(bits.Len64(or))
	}
	dst = append(dst, w[:]...)
	for m := range minis {
		dst = appendPacked(dst, d[m*deltaMini:(m+1)*deltaMini], uint(w[m]))
	}
	return dst
}
