package inflate

import "encoding/binary"

// fast decodes symbols of a block while inAhead compressed bytes are left and
// the window has room. One round takes at most 48 bits between two refills of
// the 56 bits that it works on, and less than inAhead bytes in all.
func (d *decoder) fast() error {
	lit, dist := &d.lit, &d.dist
	win, buf := d.win, d.buf
	ip, bb, bl, wr := d.ip, d.bb, d.bl, d.wr
	inEnd, outEnd := d.n-inAhead, len(win)-outSlack
	var err error

	bb |= binary.LittleEndian.Uint64(buf[ip:]) << (bl & 63)
	ip += int((63 - bl) >> 3)
	bl |= 56
	e := lit[bb&(1<<litBits-1)]
	for ip <= inEnd && wr <= outEnd {
		if e&flagLiteral != 0 {
			bb >>= e & 63
			bl -= uint(e & 63)
			binary.LittleEndian.PutUint16(win[wr:], uint16(e>>16))
			wr += int(e >> 8 & 3)
			e = lit[bb&(1<<litBits-1)]
			if e&flagLiteral != 0 {
				bb >>= e & 63
				bl -= uint(e & 63)
				binary.LittleEndian.PutUint16(win[wr:], uint16(e>>16))
				wr += int(e >> 8 & 3)
				e = lit[bb&(1<<litBits-1)]
				if e&flagLiteral != 0 {
					bb >>= e & 63
					bl -= uint(e & 63)
					binary.LittleEndian.PutUint16(win[wr:], uint16(e>>16))
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
					win[wr] = byte(e >> 16)
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
					d.endBlock()
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
		if back > wr-d.oldest {
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
			*(*[16]byte)(to) = *(*[16]byte)(from)
			for k := 16; k < length; k += 16 {
				*(*[16]byte)(to[k:]) = *(*[16]byte)(from[k:])
			}
		case back >= 8:
			for k := 0; k < length; k += 8 {
				*(*[8]byte)(to[k:]) = *(*[8]byte)(from[k:])
			}
		default:
			for k := range length {
				to[k] = from[k]
			}
		}
	}
	d.ip, d.bb, d.bl, d.wr = ip, bb, bl, wr
	d.giveBack()
	if c, ok := err.(*CorruptError); ok { //nolint:errorlint // made above
		c.Offset = d.offset()
	}
	return err
}
