package columnar

import (
	"encoding/binary"
	"slices"
)

// appendSized appends what fill appends, behind its length as four bytes, the
// way levels stand in a data page of version 1.
func appendSized(dst []byte, fill func([]byte) []byte) []byte {
	o := len(dst)
	dst = fill(append(dst, 0, 0, 0, 0))
	binary.LittleEndian.PutUint32(dst[o:], uint32(len(dst)-o-4))
	return dst
}

// appendPresence appends the definition levels (0 or 1) of the rows from r0 to
// r1, of which those in set have a value.
func appendPresence(dst []byte, set []int32, dense bool, r0, r1 int) []byte {
	n := r1 - r0
	return appendSized(dst, func(dst []byte) []byte {
		switch {
		case dense || len(set) == n:
			return appendRun(dst, n, 1, 1)
		case len(set) == 0:
			return appendRun(dst, n, 0, 1)
		}
		groups := (n + 7) / 8
		dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
		o := len(dst)
		dst = slices.Grow(dst, groups)[:o+groups]
		bitmap := dst[o:]
		clear(bitmap)
		for _, r := range set {
			k := int(r) - r0
			bitmap[k>>3] |= 1 << (k & 7)
		}
		return dst
	})
}
