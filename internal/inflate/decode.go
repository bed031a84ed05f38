package inflate

import (
	"encoding/binary"
	"errors"
	"io"
)

const (
	maxDistance = 32 << 10
	maxLength   = 258
	outSize     = 128 << 10 // text decoded at a time: what the cache next to the processor holds
	outSlack    = maxLength + 64
	windowSize  = maxDistance + outSize + outSlack

	inSize  = 64 << 10
	inSlack = 1 << 10 // zeros behind the end of the stream; more than a block header or a symbol takes
	inAhead = 32      // bytes that the fast loop may take in one round
)

// decoder decodes one DEFLATE stream into a window that slides.
type decoder struct {
	src    io.Reader
	buf    []byte // compressed bytes, with inSlack bytes behind them
	ip, n  int    // next and end in buf
	base   int64  // offset of buf in the stream
	srcErr error  // io.EOF or what reading failed with

	bb uint64 // bits taken from buf and not yet used, the first one lowest
	bl uint   // how many

	state  int
	final  bool // the block is the last one
	stored int  // bytes left of a stored block

	win    []byte
	wr     int // end of what is decoded
	oldest int // where the text begins that distances may reach

	lens [288 + 32]uint8 // lengths of the codes of a block, those of literals first
	lit  [litSize]entry
	dist [distSize]entry
}

// States of a decoder.
const (
	betweenBlocks = iota
	inStored
	inCodes
	ended
)

func newDecoder() *decoder {
	return &decoder{buf: make([]byte, inSize+inSlack), win: make([]byte, windowSize)}
}

func (d *decoder) reset(src io.Reader) {
	d.src, d.srcErr = src, nil
	d.ip, d.n, d.base = 0, 0, 0
	d.bb, d.bl = 0, 0
	d.wr = 0
	d.begin()
}

// begin begins another stream at the next whole byte.
func (d *decoder) begin() {
	d.giveBack()
	d.bb, d.bl = 0, 0
	d.state, d.final, d.stored = betweenBlocks, false, 0
	d.oldest = d.wr
}

// giveBack returns whole bytes that were taken as bits.
func (d *decoder) giveBack() {
	d.ip -= int(d.bl >> 3)
	d.bl &= 7
	d.bb &= 1<<d.bl - 1
}

// offset is how many bytes of the stream are used.
func (d *decoder) offset() int64 { return d.base + int64(d.ip) - int64(d.bl>>3) }

// want sees to it that k bytes can be taken, unless the stream ends before.
// Behind the end of the stream stand zeros.
func (d *decoder) want(k int) {
	d.giveBack()
	if d.n-d.ip >= k || d.srcErr != nil {
		return
	}
	copy(d.buf, d.buf[d.ip:d.n])
	d.base += int64(d.ip)
	d.n -= d.ip
	d.ip = 0
	idle := 0
	for d.n < k && d.srcErr == nil {
		var m int
		m, d.srcErr = d.src.Read(d.buf[d.n:inSize])
		d.n += m
		if m > 0 {
			idle = 0
		} else if idle++; idle > 100 && d.srcErr == nil {
			d.srcErr = io.ErrNoProgress
		}
	}
	if d.srcErr != nil {
		clear(d.buf[d.n : d.n+inSlack])
	}
}

// cut is the error of a stream that goes on behind what can be read.
func (d *decoder) cut() error {
	if !errors.Is(d.srcErr, io.EOF) {
		return d.srcErr
	}
	return io.ErrUnexpectedEOF
}

// overrun reports whether bits were taken from behind the end of the stream.
func (d *decoder) overrun() bool { return d.ip*8-int(d.bl) > d.n*8 }

func (d *decoder) refill() {
	d.bb |= binary.LittleEndian.Uint64(d.buf[d.ip:]) << (d.bl & 63)
	d.ip += int((63 - d.bl) >> 3)
	d.bl |= 56
}

func (d *decoder) take(n uint) uint {
	v := uint(d.bb & (1<<n - 1))
	d.bb >>= n
	d.bl -= n
	return v
}

// wrong is the error of bits that mean nothing, which may be the zeros behind
// the end.
func (d *decoder) wrong(what string) error {
	if d.overrun() {
		return d.cut()
	}
	return &CorruptError{Offset: d.offset(), What: what}
}

// slide makes room in the window; what is in front of the last maxDistance
// bytes is lost.
func (d *decoder) slide() {
	keep := min(d.wr-d.oldest, maxDistance)
	copy(d.win, d.win[d.wr-keep:d.wr])
	d.wr, d.oldest = keep, 0
}

// more decodes until the window is full or the stream ends. It returns io.EOF
// at the end of the stream.
func (d *decoder) more() error {
	for d.wr <= len(d.win)-outSlack {
		var err error
		switch d.state {
		case betweenBlocks:
			err = d.blockHeader()
		case inStored:
			err = d.copyStored()
		case inCodes:
			// The fast loop takes up to eight bytes before its first round.
			d.want(inAhead + 8)
			if d.n-d.ip >= inAhead+8 {
				err = d.fast()
			} else {
				err = d.careful()
			}
		case ended:
			return io.EOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) endBlock() {
	d.state = betweenBlocks
	if d.final {
		d.state = ended
	}
}

func (d *decoder) copyStored() error {
	d.want(1)
	k := min(d.stored, d.n-d.ip, len(d.win)-outSlack+1-d.wr)
	copy(d.win[d.wr:], d.buf[d.ip:d.ip+k])
	d.wr += k
	d.ip += k
	d.stored -= k
	if d.stored == 0 {
		d.endBlock()
		return nil
	}
	if d.n == d.ip && d.srcErr != nil {
		return d.cut()
	}
	return nil
}

// lensOrder is the order in which the lengths of the codes of lengths stand.
var lensOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

func (d *decoder) blockHeader() error {
	d.want(inSlack - 64)
	d.refill()
	d.final = d.take(1) == 1
	switch d.take(2) {
	case 0:
		return d.storedHeader()
	case 1:
		d.fixedCodes()
	case 2:
		if err := d.dynamicCodes(); err != nil {
			return err
		}
	default:
		return d.wrong("block of an unknown kind")
	}
	if d.overrun() {
		return d.cut()
	}
	pairLiterals(&d.lit)
	d.state = inCodes
	return nil
}

func (d *decoder) storedHeader() error {
	d.take(d.bl & 7)
	d.refill()
	n := d.take(16)
	if inverse := d.take(16); inverse != n^0xffff {
		return d.wrong("length of a stored block")
	}
	if d.overrun() {
		return d.cut()
	}
	d.giveBack()
	d.stored = int(n)
	d.state = inStored
	if n == 0 {
		d.endBlock()
	}
	return nil
}

func (d *decoder) fixedCodes() {
	l := d.lens[:]
	for i := range 288 {
		switch {
		case i < 144:
			l[i] = 8
		case i < 256:
			l[i] = 9
		case i < 280:
			l[i] = 7
		default:
			l[i] = 8
		}
	}
	for i := 288; i < len(l); i++ {
		l[i] = 5
	}
	build(d.lit[:], litBits, l[:288], litSymbols[:])
	build(d.dist[:], distBits, l[288:], distSymbols[:])
}

func (d *decoder) dynamicCodes() error {
	nlit, ndist, nlens := int(d.take(5))+257, int(d.take(5))+1, int(d.take(4))+4
	if nlit > 286 || ndist > 30 {
		return d.wrong("too many symbols")
	}
	var lens [19]uint8
	for i := range nlens {
		d.refill()
		lens[lensOrder[i]] = uint8(d.take(3))
	}
	var tab [1 << precode]entry
	if !build(tab[:], precode, lens[:], lenSymbols[:]) {
		return d.wrong("codes of the code lengths")
	}
	all := d.lens[:nlit+ndist]
	for i := 0; i < len(all); {
		d.refill()
		e := tab[d.bb&(1<<precode-1)]
		if e&flagRare != 0 {
			d.take(precode)
			return d.wrong("code length")
		}
		d.take(uint(e & 0xff))
		sym := uint8(e >> 16)
		if sym < 16 {
			all[i] = sym
			i++
			continue
		}
		var n int
		var v uint8
		switch sym {
		case 16:
			if i == 0 {
				return d.wrong("repeated code length without one before")
			}
			v, n = all[i-1], 3+int(d.take(2))
		case 17:
			n = 3 + int(d.take(3))
		default:
			n = 11 + int(d.take(7))
		}
		if n > len(all)-i {
			return d.wrong("too many code lengths")
		}
		for ; n > 0; n-- {
			all[i] = v
			i++
		}
	}
	if !build(d.lit[:], litBits, all[:nlit], litSymbols[:]) || !build(d.dist[:], distBits, all[nlit:], distSymbols[:]) {
		return d.wrong("codes of a block")
	}
	return nil
}

// careful decodes one symbol near the end of the stream.
func (d *decoder) careful() error {
	d.refill()
	e := d.lit[d.bb&(1<<litBits-1)]
	if e&flagSecond != 0 {
		d.take(litBits)
		e = d.second(d.lit[:], e)
	}
	if e&flagLiteral != 0 {
		if n := e >> 8 & 3; n == 2 { // the stream may end behind the first one
			e = e&0xff0000 | uint32(d.lens[e>>16&0xff])
		}
		d.take(uint(e & 0xff))
		if d.overrun() {
			return d.cut()
		}
		d.win[d.wr] = byte(e >> 16)
		d.wr++
		return nil
	}
	if e&flagRare != 0 {
		if e&flagEnd == 0 {
			d.take(1)
			return d.wrong("no such code")
		}
		d.take(uint(e & 0xff))
		if d.overrun() {
			return d.cut()
		}
		d.endBlock()
		return nil
	}
	length := d.value(e)
	d.refill()
	e = d.dist[d.bb&(1<<distBits-1)]
	if e&flagSecond != 0 {
		d.take(distBits)
		e = d.second(d.dist[:], e)
	}
	if e&flagRare != 0 {
		d.take(1)
		return d.wrong("no such code of a distance")
	}
	dist := d.value(e)
	if d.overrun() {
		return d.cut()
	}
	if dist > d.wr-d.oldest {
		return d.wrong("distance in front of the text")
	}
	for range length {
		d.win[d.wr] = d.win[d.wr-dist]
		d.wr++
	}
	return nil
}

func (d *decoder) second(tab []entry, e entry) entry {
	return tab[uint(e>>16)+uint(d.bb&(1<<(e>>8&15)-1))]
}

// value takes the bits of a length or a distance.
func (d *decoder) value(e entry) int {
	v := d.bb & (1<<(e&0xff) - 1) >> (e >> 8 & 15)
	d.take(uint(e & 0xff))
	return int(e>>16) + int(v)
}
