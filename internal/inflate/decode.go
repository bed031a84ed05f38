package inflate

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
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

// stream is a DEFLATE stream and how far it is decoded.
type stream struct {
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

	lens [288 + 32]uint8 // lengths of the codes of a block, those of literals first
	lit  [litSize]entry
	dist [distSize]entry
}

// output is where text is decoded to: bytes, or bytes and marks.
type output[T byte | uint16] struct {
	win    []T
	wr     int // end of what is decoded
	oldest int // where the text begins that distances may reach
}

// decoder decodes one stream after another into a window that slides.
type decoder struct {
	stream
	output[byte]
}

// States of a stream.
const (
	betweenBlocks = iota
	inStored
	inCodes
	ended
)

func newDecoder() *decoder {
	d := &decoder{}
	d.buf, d.win = make([]byte, inSize+inSlack), make([]byte, windowSize)
	return d
}

func (d *decoder) reset(src io.Reader) {
	d.stream.reset(src)
	d.wr, d.oldest = 0, 0
}

// begin begins another stream at the next whole byte.
func (d *decoder) begin() {
	d.stream.begin()
	d.oldest = d.wr
}

func (s *stream) reset(src io.Reader) {
	s.src, s.srcErr = src, nil
	s.ip, s.n, s.base = 0, 0, 0
	s.bb, s.bl = 0, 0
	s.begin()
}

func (s *stream) begin() {
	s.giveBack()
	s.bb, s.bl = 0, 0
	s.state, s.final, s.stored = betweenBlocks, false, 0
}

// giveBack returns whole bytes that were taken as bits.
func (s *stream) giveBack() {
	s.ip -= int(s.bl >> 3)
	s.bl &= 7
	s.bb &= 1<<s.bl - 1
}

// offset is how many bytes of the stream are used.
func (s *stream) offset() int64 { return s.base + int64(s.ip) - int64(s.bl>>3) }

// bit is how many bits of the stream are used.
func (s *stream) bit() int64 { return (s.base+int64(s.ip))*8 - int64(s.bl) }

// want sees to it that k bytes can be taken, unless the stream ends before.
// Behind the end of the stream stand zeros.
func (s *stream) want(k int) {
	s.giveBack()
	if s.n-s.ip >= k || s.srcErr != nil {
		return
	}
	copy(s.buf, s.buf[s.ip:s.n])
	s.base += int64(s.ip)
	s.n -= s.ip
	s.ip = 0
	m := 0
	m, s.srcErr = readAtLeast(s.src, s.buf[s.n:inSize], k-s.n)
	s.n += m
	if s.srcErr != nil {
		clear(s.buf[s.n : s.n+inSlack])
	}
}

// readAtLeast reads until it has k bytes or an error.
func readAtLeast(src io.Reader, b []byte, k int) (n int, err error) {
	for idle := 0; n < k && err == nil; idle++ {
		var m int
		m, err = src.Read(b[n:])
		if n += m; m > 0 {
			idle = 0
		} else if idle == 100 && err == nil {
			err = io.ErrNoProgress
		}
	}
	return n, err
}

// cut is the error of a stream that goes on behind what can be read.
func (s *stream) cut() error {
	if !errors.Is(s.srcErr, io.EOF) {
		return s.srcErr
	}
	return io.ErrUnexpectedEOF
}

// overrun reports whether bits were taken from behind the end of the stream.
func (s *stream) overrun() bool { return s.ip*8-int(s.bl) > s.n*8 }

func (s *stream) refill() {
	s.bb |= binary.LittleEndian.Uint64(s.buf[s.ip:]) << (s.bl & 63)
	s.ip += int((63 - s.bl) >> 3)
	s.bl |= 56
}

func (s *stream) take(n uint) uint {
	v := uint(s.bb & (1<<n - 1))
	s.bb >>= n
	s.bl -= n
	return v
}

// wrong is the error of bits that mean nothing, which may be the zeros behind
// the end.
func (s *stream) wrong(what string) error {
	if s.overrun() {
		return s.cut()
	}
	return &CorruptError{Offset: s.offset(), What: what}
}

// slide makes room in the window; what is in front of the last maxDistance
// bytes is lost.
func (d *decoder) slide() {
	keep := min(d.wr-d.oldest, maxDistance)
	copy(d.win, d.win[d.wr-keep:d.wr])
	d.wr, d.oldest = keep, 0
}

const noStop = math.MaxInt64

var errStop = errors.New("inflate: a block begins")

// decode decodes until the window is full, which is no error, or the stream
// ends, which is io.EOF, or a block begins at the bit stop or behind it, which
// is errStop.
func decode[T byte | uint16](s *stream, t *output[T], stop int64) error {
	for t.wr <= len(t.win)-outSlack {
		var err error
		switch s.state {
		case betweenBlocks:
			if s.bit() >= stop {
				return errStop
			}
			err = s.blockHeader()
		case inStored:
			err = copyStored(s, t)
		case inCodes:
			// The fast loop takes up to eight bytes before its first round.
			s.want(inAhead + 8)
			if s.n-s.ip >= inAhead+8 {
				err = fast(s, t)
			} else {
				err = careful(s, t)
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

func (s *stream) endBlock() {
	s.state = betweenBlocks
	if s.final {
		s.state = ended
	}
}

func copyStored[T byte | uint16](s *stream, t *output[T]) error {
	s.want(1)
	k := min(s.stored, s.n-s.ip, len(t.win)-outSlack+1-t.wr)
	put(t.win[t.wr:], s.buf[s.ip:s.ip+k])
	t.wr += k
	s.ip += k
	s.stored -= k
	if s.stored == 0 {
		s.endBlock()
		return nil
	}
	if s.n == s.ip && s.srcErr != nil {
		return s.cut()
	}
	return nil
}

// put writes bytes as text.
func put[T byte | uint16](to []T, from []byte) {
	if to, ok := any(to).([]byte); ok {
		copy(to, from)
		return
	}
	for i, b := range from {
		to[i] = T(b)
	}
}

// lensOrder is the order in which the lengths of the codes of lengths stand.
var lensOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

func (s *stream) blockHeader() error {
	s.want(inSlack - 64)
	s.refill()
	s.final = s.take(1) == 1
	switch s.take(2) {
	case 0:
		return s.storedHeader()
	case 1:
		s.fixedCodes()
	case 2:
		if err := s.dynamicCodes(); err != nil {
			return err
		}
	default:
		return s.wrong("block of an unknown kind")
	}
	if s.overrun() {
		return s.cut()
	}
	pairLiterals(&s.lit)
	s.state = inCodes
	return nil
}

func (s *stream) storedHeader() error {
	s.take(s.bl & 7)
	s.refill()
	n := s.take(16)
	if inverse := s.take(16); inverse != n^0xffff {
		return s.wrong("length of a stored block")
	}
	if s.overrun() {
		return s.cut()
	}
	s.giveBack()
	s.stored = int(n)
	s.state = inStored
	if n == 0 {
		s.endBlock()
	}
	return nil
}

func (s *stream) fixedCodes() {
	l := s.lens[:]
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
	build(s.lit[:], litBits, l[:288], litSymbols[:])
	build(s.dist[:], distBits, l[288:], distSymbols[:])
}

func (s *stream) dynamicCodes() error {
	nlit, ndist, nlens := int(s.take(5))+257, int(s.take(5))+1, int(s.take(4))+4
	if nlit > 286 || ndist > 30 {
		return s.wrong("too many symbols")
	}
	var lens [19]uint8
	for i := range nlens {
		s.refill()
		lens[lensOrder[i]] = uint8(s.take(3))
	}
	var tab [1 << precode]entry
	if !build(tab[:], precode, lens[:], lenSymbols[:]) {
		return s.wrong("codes of the code lengths")
	}
	all := s.lens[:nlit+ndist]
	for i := 0; i < len(all); {
		s.refill()
		e := tab[s.bb&(1<<precode-1)]
		if e&flagRare != 0 {
			s.take(precode)
			return s.wrong("code length")
		}
		s.take(uint(e & 0xff))
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
				return s.wrong("repeated code length without one before")
			}
			v, n = all[i-1], 3+int(s.take(2))
		case 17:
			n = 3 + int(s.take(3))
		default:
			n = 11 + int(s.take(7))
		}
		if n > len(all)-i {
			return s.wrong("too many code lengths")
		}
		for ; n > 0; n-- {
			all[i] = v
			i++
		}
	}
	if !build(s.lit[:], litBits, all[:nlit], litSymbols[:]) || !build(s.dist[:], distBits, all[nlit:], distSymbols[:]) {
		return s.wrong("codes of a block")
	}
	return nil
}

// careful decodes one symbol near the end of the stream.
func careful[T byte | uint16](s *stream, t *output[T]) error {
	s.refill()
	e := s.lit[s.bb&(1<<litBits-1)]
	if e&flagSecond != 0 {
		s.take(litBits)
		e = s.second(s.lit[:], e)
	}
	if e&flagLiteral != 0 {
		if n := e >> 8 & 3; n == 2 { // the stream may end behind the first one
			e = e&0xff0000 | uint32(s.lens[e>>16&0xff])
		}
		s.take(uint(e & 0xff))
		if s.overrun() {
			return s.cut()
		}
		t.win[t.wr] = T(e >> 16 & 0xff)
		t.wr++
		return nil
	}
	if e&flagRare != 0 {
		if e&flagEnd == 0 {
			s.take(1)
			return s.wrong("no such code")
		}
		s.take(uint(e & 0xff))
		if s.overrun() {
			return s.cut()
		}
		s.endBlock()
		return nil
	}
	length := s.value(e)
	s.refill()
	e = s.dist[s.bb&(1<<distBits-1)]
	if e&flagSecond != 0 {
		s.take(distBits)
		e = s.second(s.dist[:], e)
	}
	if e&flagRare != 0 {
		s.take(1)
		return s.wrong("no such code of a distance")
	}
	dist := s.value(e)
	if s.overrun() {
		return s.cut()
	}
	if dist > t.wr-t.oldest {
		return s.wrong("distance in front of the text")
	}
	for range length {
		t.win[t.wr] = t.win[t.wr-dist]
		t.wr++
	}
	return nil
}

func (s *stream) second(tab []entry, e entry) entry {
	return tab[uint(e>>16)+uint(s.bb&(1<<(e>>8&15)-1))]
}

// value takes the bits of a length or a distance.
func (s *stream) value(e entry) int {
	v := s.bb & (1<<(e&0xff) - 1) >> (e >> 8 & 15)
	s.take(uint(e & 0xff))
	return int(e>>16) + int(v)
}
