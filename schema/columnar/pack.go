package columnar

import (
	"encoding/binary"
	"slices"
)

// packSlack is how many bytes behind the packed values the packer may write.
const packSlack = 8

// appendPacked appends v, least significant bit first, w bits each. The length
// of v must be a multiple of 8, so that the result ends on a byte.
func appendPacked[T uint32 | uint64](dst []byte, v []T, w uint) []byte {
	o, n := len(dst), len(v)*int(w)/8
	dst = slices.Grow(dst, n+packSlack)
	packInto(dst[o:o+n+packSlack], v, w)
	return dst[:o+n]
}

// packInto packs v into out. Values are first joined to words as wide as fit
// into 64 bits, so that narrow widths need one step per 8, 4 or 2 values.
func packInto[T uint32 | uint64](out []byte, v []T, w uint) {
	var acc uint64
	var n uint
	switch {
	case w == 0:
		return
	case w <= 8:
		for ; len(v) >= 8; v = v[8:] {
			x := uint64(v[0]) | uint64(v[1])<<w | uint64(v[2])<<(2*w) | uint64(v[3])<<(3*w) |
				uint64(v[4])<<(4*w) | uint64(v[5])<<(5*w) | uint64(v[6])<<(6*w) | uint64(v[7])<<(7*w)
			binary.LittleEndian.PutUint64(out, x)
			out = out[w:]
		}
		return
	case w <= 16:
		for ; len(v) >= 4; v = v[4:] {
			x := uint64(v[0]) | uint64(v[1])<<w | uint64(v[2])<<(2*w) | uint64(v[3])<<(3*w)
			acc |= x << n
			if n += 4 * w; n >= 64 {
				binary.LittleEndian.PutUint64(out, acc)
				out = out[8:]
				n -= 64
				acc = x >> (4*w - n)
			}
		}
	case w <= 32:
		for ; len(v) >= 2; v = v[2:] {
			x := uint64(v[0]) | uint64(v[1])<<w
			acc |= x << n
			if n += 2 * w; n >= 64 {
				binary.LittleEndian.PutUint64(out, acc)
				out = out[8:]
				n -= 64
				acc = x >> (2*w - n)
			}
		}
	default:
		for _, y := range v {
			x := uint64(y)
			acc |= x << n
			if n += w; n >= 64 {
				binary.LittleEndian.PutUint64(out, acc)
				out = out[8:]
				n -= 64
				acc = x >> (w - n)
			}
		}
	}
	binary.LittleEndian.PutUint64(out, acc)
}
