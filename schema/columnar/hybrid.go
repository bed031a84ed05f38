package columnar

import "encoding/binary"

// minRunBits is how many packed bits a run must replace to be worth its header
// and that of the packed run behind it.
const minRunBits = 64

// appendHybrid appends v in the RLE/bit-packed hybrid encoding at width w
// (1 to 32 bits). Runs are looked for at groups of eight only: a packed run
// holds whole groups, so a run can start nowhere else.
func appendHybrid(dst []byte, v []uint32, w uint) []byte {
	start, i := 0, 0 // v[start:i] waits to be packed
	for i+8 <= len(v) {
		g := v[i : i+8 : i+8]
		x := g[0]
		if (g[1]^x)|(g[2]^x)|(g[3]^x)|(g[4]^x)|(g[5]^x)|(g[6]^x)|(g[7]^x) != 0 {
			i += 8
			continue
		}
		j := i + 8
		for j < len(v) && v[j] == x {
			j++
		}
		if uint(j-i)*w < minRunBits {
			i += 8
			continue
		}
		dst = appendPackedRun(dst, v[start:i], w)
		dst = appendRun(dst, j-i, x, w)
		start, i = j, j
	}
	return appendPackedRun(dst, v[start:], w)
}

// appendRun appends n times the value x as one run.
func appendRun(dst []byte, n int, x uint32, w uint) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for s := uint(0); s < w; s += 8 {
		dst = append(dst, byte(x>>s))
	}
	return dst
}

// appendPackedRun appends v as one bit-packed run, the last group padded with
// zeros. Only the last run of a page may need padding.
func appendPackedRun(dst []byte, v []uint32, w uint) []byte {
	if len(v) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64((len(v)+7)/8)<<1|1)
	whole := len(v) &^ 7
	dst = appendPacked(dst, v[:whole], w)
	if whole < len(v) {
		var tail [8]uint32
		copy(tail[:], v[whole:])
		dst = appendPacked(dst, tail[:], w)
	}
	return dst
}
