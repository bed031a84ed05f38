package inflate

import (
	"bytes"
	"encoding/binary"
	"io"
)

const (
	headerBits = 13 // of a block with codes of its own, in front of the number of code lengths
	findMargin = inSlack
)

// skips says how many bits to go on for the next place where a block may begin
// that is not the last one and has codes of its own, as far as some bits tell.
var skips [1 << headerBits]uint8

// kraft holds the room that four code lengths of three bits take in a code.
var kraft [1 << 12]uint16

const wholeCode = 1 << precode // room that a complete code takes

func init() {
	for v := range uint(len(skips)) {
		n := uint(0)
		for !mayBegin(v>>n, headerBits-n) {
			n++
		}
		skips[v] = uint8(n)
	}
	for v := range uint(len(kraft)) {
		for x := v; x > 0; x >>= 3 {
			if l := x & 7; l > 0 {
				kraft[v] += wholeCode >> l
			}
		}
	}
}

// mayBegin reports whether the first n bits of a block may be those of v.
func mayBegin(v, n uint) bool {
	const kind = 2 << 1 // not the last block, with codes of its own
	if known := uint(1)<<min(n, 3) - 1; v&known != kind&known {
		return false
	}
	return (n < 8 || v>>3&31 < 30) && (n < 13 || v>>8&31 < 30)
}

// bitsAt returns at least 57 bits of b.
func bitsAt(b []byte, bit int) uint64 { return binary.LittleEndian.Uint64(b[bit>>3:]) >> (bit & 7) }

// findBlock returns the first bit of b from which on a block seems to begin,
// or -1. It sees blocks that have codes of their own and are not the last ones.
func findBlock(s *stream, b []byte) int {
	s.reset(nil)
	buf := s.buf
	defer func() { s.buf = buf; s.reset(nil) }()
	s.buf = b
	for bit, end := 0, (len(b)-findMargin)*8; bit < end; {
		v := bitsAt(b, bit)
		if n := skips[v&(1<<headerBits-1)]; n > 0 {
			bit += int(n)
			continue
		}
		lens := bitsAt(b, bit+17) & (1<<(3*(v>>13&15+4)) - 1)
		room := kraft[lens&0xfff] + kraft[lens>>12&0xfff] + kraft[lens>>24&0xfff] + kraft[lens>>36&0xfff] + kraft[lens>>48&0xfff]
		if room == wholeCode && s.beginsAt(bit) {
			return bit
		}
		bit++
	}
	return -1
}

// beginsAt reports whether the codes of a block at a bit of buf are codes.
func (s *stream) beginsAt(bit int) bool {
	s.ip, s.n, s.bb, s.bl = bit>>3, len(s.buf), 0, 0
	s.srcErr = io.EOF
	s.refill()
	s.take(uint(bit&7) + 3)
	return s.dynamicCodes() == nil && s.lens[endSymbol] > 0
}

// findMember returns where in the first bytes of b a member seems to begin, or
// -1.
func findMember(s *stream, b []byte, limit int) int {
	buf := s.buf
	defer func() { s.buf = buf; s.reset(nil) }()
	s.buf = b
	for at := 0; at < limit; at++ {
		k := bytes.Index(b[at:limit], magic)
		if k < 0 {
			break
		}
		at += k
		s.reset(nil)
		s.ip, s.n, s.srcErr = at, len(b)-findMargin, io.EOF
		if s.header() == nil {
			s.begin()
			if s.blockHeader() == nil {
				return at
			}
		}
	}
	return -1
}
