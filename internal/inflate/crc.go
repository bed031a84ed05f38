package inflate

import (
	"hash/crc32"
)

// Checksums of CRC-32 are polynomials over bits modulo a fixed one, the highest
// power in the lowest bit. To append n bytes is to multiply by x to the 8n.

// powers holds x to the powers of two.
var powers [32]uint32

func init() {
	powers[0] = 1 << 30 // x
	for i := 1; i < len(powers); i++ {
		powers[i] = multiply(powers[i-1], powers[i-1])
	}
}

// multiply returns the product of two polynomials.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a>>31 != 0 {
			product ^= b
		}
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return product
}

// followedBy is the checksum of two texts one behind the other.
func (a checksum) followedBy(b checksum) checksum {
	crc := a.crc
	for n, k := b.size, 3; n != 0; n >>= 1 {
		if n&1 != 0 {
			crc = multiply(powers[k], crc)
		}
		k++
	}
	return checksum{crc ^ b.crc, a.size + b.size}
}
