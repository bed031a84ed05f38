package nsight

import (
	"encoding/binary"
	"math/bits"

	"tracelake/internal/digest"
	"tracelake/schema"
)

// segment holds a block of a column, packed to the bytes that its range needs.
type segment struct {
	rows     int
	present  []uint64 // bit per row; nil where every row has a value
	none     bool     // no row has a value
	min, max int64
	width    uint8 // bytes per value: 0, 1, 2, 4 or 8
	data     []byte
}

func pack(vals []int64) segment {
	s := segment{rows: len(vals)}
	known := 0
	for _, v := range vals {
		if v == schema.Null {
			continue
		}
		if known == 0 {
			s.min, s.max = v, v
		}
		s.min, s.max = min(s.min, v), max(s.max, v)
		known++
	}
	if known == 0 {
		s.none = true
		return s
	}
	if known < len(vals) {
		s.present = make([]uint64, (len(vals)+63)/64)
		for i, v := range vals {
			if v != schema.Null {
				s.present[i>>6] |= 1 << (i & 63)
			}
		}
	}
	switch b := bits.Len64(uint64(s.max) - uint64(s.min)); {
	case b == 0:
		return s
	case b <= 8:
		s.width = 1
	case b <= 16:
		s.width = 2
	case b <= 32:
		s.width = 4
	default:
		s.width = 8
	}
	s.data = make([]byte, known*int(s.width))
	at := 0
	for _, v := range vals {
		if v == schema.Null {
			continue
		}
		d := uint64(v) - uint64(s.min)
		switch s.width {
		case 1:
			s.data[at] = byte(d)
		case 2:
			binary.LittleEndian.PutUint16(s.data[at:], uint16(d))
		case 4:
			binary.LittleEndian.PutUint32(s.data[at:], uint32(d))
		default:
			binary.LittleEndian.PutUint64(s.data[at:], d)
		}
		at += int(s.width)
	}
	return s
}

// fill unpacks the block into out, which has room for its rows.
func (s *segment) fill(out []int64) {
	if s.none {
		for i := range out[:s.rows] {
			out[i] = schema.Null
		}
		return
	}
	if s.present == nil {
		s.values(out[:s.rows])
		return
	}
	known := 0
	for _, w := range s.present {
		known += bits.OnesCount64(w)
	}
	s.values(out[:known])
	for i, k := s.rows-1, known-1; i >= 0; i-- { // spread from the end
		if s.present[i>>6]>>(i&63)&1 == 1 {
			out[i] = out[k]
			k--
		} else {
			out[i] = schema.Null
		}
	}
}

// values unpacks the values alone.
func (s *segment) values(out []int64) {
	switch s.width {
	case 1:
		for i := range out {
			out[i] = s.min + int64(s.data[i])
		}
	case 2:
		for i := range out {
			out[i] = s.min + int64(binary.LittleEndian.Uint16(s.data[2*i:]))
		}
	case 4:
		for i := range out {
			out[i] = s.min + int64(binary.LittleEndian.Uint32(s.data[4*i:]))
		}
	case 8:
		for i := range out {
			out[i] = int64(uint64(s.min) + binary.LittleEndian.Uint64(s.data[8*i:]))
		}
	default:
		for i := range out {
			out[i] = s.min
		}
	}
}

// sum is the digest of the block's values.
func (s *segment) sum() [digest.Size]byte {
	h := digest.New()
	var head [25]byte
	binary.LittleEndian.PutUint64(head[:], uint64(s.rows))
	binary.LittleEndian.PutUint64(head[8:], uint64(s.min))
	head[16] = s.width
	h.Write(head[:])
	for _, w := range s.present {
		binary.LittleEndian.PutUint64(head[:], w)
		h.Write(head[:8])
	}
	h.Write(s.data)
	return [digest.Size]byte(h.Sum(nil))
}

// stored is a column in blocks.
type stored struct {
	rows int
	segs []segment
}

func (s *stored) fill(out []int64) {
	for i := range s.segs {
		s.segs[i].fill(out)
		out = out[s.segs[i].rows:]
	}
}

// some reports whether any row has a value.
func (s *stored) some() bool {
	for i := range s.segs {
		if !s.segs[i].none {
			return true
		}
	}
	return false
}
