package inflate

import "encoding/binary"

// fast decodes symbols of a block while inAhead compressed bytes are left and
// the window has room. One round takes at most 48 bits between two refills of
// the 56 bits that it works on, and less than inAhead bytes in all.
func fast[T byte | uint16](s *stream, t *output[T]) error {
	lit, dist := &s.lit, &s.dist
	win, buf := t.win, s.buf
	ip, bb, bl, wr := s.ip, s.bb, s.bl, t.wr
	inEnd, outEnd := s.n-inAhead, len(win)-outSlack
	var err error

	bb |= binary.LittleEndian.Uint64(buf[ip:]) << (bl & 63)
	ip += int((63 - bl) >> 3)
	bl |= 56
	e := lit[bb&(1<<litBits-1)]
	for ip <= inEnd && wr <= outEnd {
		if e&flagLiteral != 0 {
			bb >>= e & 63
			bl -= uint(e & 63)
			two(win[wr:], e)
			wr += int(e >> 8 & 3)
			e = lit[bb&(1<<litBits-1)]
			if e&flagLiteral != 0 {
				bb >>= e & 63
				bl -= uint(e & 63)
				two(win[wr:], e)
				wr += int(e >> 8 & 3)
				e = lit[bb&(1<<litBits-1)]
				if e&flagLiteral != 0 {
					bb >>= e & 63
					bl -= uint(e & 63)
					two(win[wr:], e)
					wr += int(e >> 8 & 3)
					bb |= binary.LittleEndian.Uint64(buf[ip:]) << (bl & 63)
					ip += int((63 - bl) >> 3)
					bl |= 56
					e = lit[bb&(1<<litBits-1)]
					continue
				}
			}
		}
		if e&flagRare != 0 {
			if e&flagSecond != 0 {
				bb >>= litBits
				bl -= litBits
				e = lit[(uint(e>>16)+uint(bb&(1<<(e>>8&15)-1)))&(litSize-1)]
				if e&flagLiteral != 0 {
					bb >>= e & 63
					bl -= uint(e & 63)
					win[wr] = T(e >> 16 & 0xff)
					wr++
					bb |= binary.LittleEndian.Uint64(buf[ip:]) << (bl & 63)
					ip += int((63 - bl) >> 3)
					bl |= 56
					e = lit[bb&(1<<litBits-1)]
					continue
				}
			}
			if e&flagRare != 0 {
				if e&flagEnd != 0 {
					bb >>= e & 63
					bl -= uint(e & 63)
					s.endBlock()
				} else {
					err = &CorruptError{What: "no such code"}
				}
				break
			}
		}
		length := int(e>>16) + int(bb&(1<<(e&63)-1)>>(e>>8&15))
		bb >>= e & 63
		bl -= uint(e & 63)
		if bl < 28 {
			bb |= binary.LittleEndian.Uint64(buf[ip:]) << (bl & 63)
			ip += int((63 - bl) >> 3)
			bl |= 56
		}
		e = dist[bb&(1<<distBits-1)]
		if e&flagRare != 0 {
			if e&flagSecond != 0 {
				bb >>= distBits
				bl -= distBits
				e = dist[(uint(e>>16)+uint(bb&(1<<(e>>8&15)-1)))&(distSize-1)]
			}
			if e&flagRare != 0 {
				err = &CorruptError{What: "no such code of a distance"}
				break
			}
		}
		back := int(e>>16) + int(bb&(1<<(e&63)-1)>>(e>>8&15))
		bb >>= e & 63
		bl -= uint(e & 63)
		if back > wr-t.oldest {
			err = &CorruptError{What: "distance in front of the text"}
			break
		}
		bb |= binary.LittleEndian.Uint64(buf[ip:]) << (bl & 63)
		ip += int((63 - bl) >> 3)
		bl |= 56
		e = lit[bb&(1<<litBits-1)]

		from, to := win[wr-back:], win[wr:]
		wr += length
		switch {
		case back >= 16:
			// Pieces of 16 bytes, of which the last may write behind the match.
			*(*[16]T)(to) = *(*[16]T)(from)
			for k := 16; k < length; k += 16 {
				*(*[16]T)(to[k:]) = *(*[16]T)(from[k:])
			}
		case back >= 8:
			for k := 0; k < length; k += 8 {
				*(*[8]T)(to[k:]) = *(*[8]T)(from[k:])
			}
		default:
			for k := range length {
				to[k] = from[k]
			}
		}
	}
	s.ip, s.bb, s.bl, t.wr = ip, bb, bl, wr
	s.giveBack()
	if c, ok := err.(*CorruptError); ok { //nolint:errorlint // made above
		c.Offset = s.offset()
	}
	return err
}

// two writes the literals of an entry, the second of which may mean nothing.
func two[T byte | uint16](to []T, e entry) {
	p := (*[2]T)(to)
	p[0] = T(e >> 16 & 0xff)
	p[1] = T(e >> 24)
}
