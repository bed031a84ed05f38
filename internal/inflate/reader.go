// Package inflate decompresses gzip faster than the libraries do, with tables
// that give up to two literals at a time and a window that is copied in words.
// Checksums and lengths are always checked.
package inflate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"tracelake/internal/freelist"
)

var (
	// ErrHeader says that no gzip member begins where one should.
	ErrHeader = errors.New("inflate: invalid gzip header")
	// ErrChecksum says that the text is not what was compressed.
	ErrChecksum = errors.New("inflate: checksum or length of the text does not match")
)

// CorruptError is a compressed stream that means nothing.
type CorruptError struct {
	Offset int64 // bytes of the compressed stream that were used
	What   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s, at byte %d of the compressed stream", e.What, e.Offset)
}

// Reader reads the text of a gzip stream of one or many members.
type Reader struct {
	o        Options
	d        *decoder
	text     []byte // decoded and not yet handed out
	total    int64  // bytes of text so far
	sum      checksum
	members  int
	inText   bool
	trailing bool
	err      error

	blocks bool     // blocks are looked for
	queue  []*batch // of blocks, in order
	batch  *batch   // whose text is handed out
	spare  []*batch

	ahead *ahead // what is decompressed from guessed places on; nil where nothing is
}

// Options says how to read a stream. The zero value is usable.
type Options struct {
	Workers int          // goroutines that decompress at once
	Run     func(func()) // runs the work of one of them; nil means at once
	// Share says how many of the workers this stream may count on just now,
	// where others want them too. nil means all of them.
	Share func() int

	limits aheadLimits
}

// readers keeps windows and tables from stream to stream.
var readers = freelist.List[*Reader]{New: func() *Reader { return &Reader{d: newDecoder()} }}

// Open returns a reader of src, from which it reads ahead.
func Open(src io.Reader, o Options) *Reader {
	r := readers.Get()
	r.d.reset(src)
	if o.limits == (aheadLimits{}) {
		o.limits = defaultLimits
	}
	r.o, r.blocks = o, o.Workers > 1
	return r
}

// Close ends the use of a reader.
func (r *Reader) Close() {
	for _, b := range r.queue {
		<-b.done
	}
	if r.ahead != nil {
		r.ahead.close()
	}
	d := r.d
	d.reset(nil)
	*r = Reader{d: d}
	readers.Put(r)
}

// Trailing reports, after the end, whether bytes that are neither zeros nor a
// member follow the last member.
func (r *Reader) Trailing() bool { return r.trailing }

// Read reads text. Behind the last text that can be had comes io.EOF, or what
// ended the stream: io.ErrUnexpectedEOF where it is cut off, ErrHeader,
// ErrChecksum, a *CorruptError, or an error of the source.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.text) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.err = r.step()
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

// step decodes the next piece of text, or goes to the next member.
func (r *Reader) step() error {
	d := r.d
	r.lookAhead()
	if !r.inText {
		if r.nextBatch() {
			return nil
		}
		if r.members > 0 {
			var err error
			if r.trailing, err = d.skipPadding(); err != nil {
				return err
			}
		}
		if r.adopt() {
			return nil
		}
		if err := d.header(); err != nil {
			return err
		}
		d.begin()
		r.members++
		r.sum, r.inText = checksum{}, true
	} else if d.state == betweenBlocks && r.adopt() {
		return nil
	}
	d.slide()
	from := d.wr
	err := decode(&d.stream, &d.output, r.ahead.stop())
	r.text = d.win[from:d.wr]
	r.total += int64(len(r.text))
	r.sum.add(r.text)
	switch {
	case errors.Is(err, errStop):
		return nil
	case errors.Is(err, io.EOF):
		r.inText = false
		want, err := d.trailer()
		if err == nil && want != r.sum {
			err = ErrChecksum
		}
		return err
	}
	return err
}

// checksum is that of some text, and how long it is modulo 2³².
type checksum struct{ crc, size uint32 }

func (a *checksum) add(text []byte) {
	a.crc = crc32.Update(a.crc, crc32.IEEETable, text)
	a.size += uint32(len(text))
}

// trailer reads what stands behind a member.
func (s *stream) trailer() (checksum, error) {
	b, err := s.bytes(8)
	if err != nil {
		return checksum{}, err
	}
	return checksum{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}, nil
}

// bytes takes k whole bytes of the stream; they are valid until more is taken.
func (s *stream) bytes(k int) ([]byte, error) {
	s.giveBack()
	s.bb, s.bl = 0, 0 // the rest of the last byte of a stream means nothing
	s.want(k)
	if s.n-s.ip < k {
		return nil, s.cut()
	}
	s.ip += k
	return s.buf[s.ip-k : s.ip], nil
}

const (
	flagHeaderCRC = 1 << 1
	flagExtra     = 1 << 2
	flagName      = 1 << 3
	flagComment   = 1 << 4

	maxHeaderText = 512 // bytes of a name or a comment, as other readers have it
)

var magic = []byte{0x1f, 0x8b}

// header reads the header of the next member.
func (s *stream) header() error {
	h, err := s.bytes(10)
	if err != nil {
		return err
	}
	flags := h[3]
	if !bytes.HasPrefix(h, magic) || h[2] != 8 || flags>>5 != 0 {
		return ErrHeader
	}
	crc := crc32.ChecksumIEEE(h)
	if flags&flagExtra != 0 {
		b, err := s.bytes(2)
		if err != nil {
			return err
		}
		crc = crc32.Update(crc, crc32.IEEETable, b)
		if crc, err = s.skip(int(binary.LittleEndian.Uint16(b)), crc); err != nil {
			return err
		}
	}
	for _, f := range []byte{flagName, flagComment} {
		if flags&f == 0 {
			continue
		}
		for n := 0; ; n++ {
			if n == maxHeaderText {
				return ErrHeader
			}
			b, err := s.bytes(1)
			if err != nil {
				return err
			}
			crc = crc32.Update(crc, crc32.IEEETable, b)
			if b[0] == 0 {
				break
			}
		}
	}
	if flags&flagHeaderCRC != 0 {
		b, err := s.bytes(2)
		if err != nil {
			return err
		}
		if binary.LittleEndian.Uint16(b) != uint16(crc) {
			return ErrHeader
		}
	}
	return nil
}

func (s *stream) skip(n int, crc uint32) (uint32, error) {
	for n > 0 {
		b, err := s.bytes(min(n, 4096))
		if err != nil {
			return 0, err
		}
		crc = crc32.Update(crc, crc32.IEEETable, b)
		n -= len(b)
	}
	return crc, nil
}

// skipPadding skips zeros behind a member. It returns io.EOF unless another
// member follows, and whether something else does.
func (s *stream) skipPadding() (trailing bool, err error) {
	for {
		s.want(2)
		if s.ip == s.n {
			if !errors.Is(s.srcErr, io.EOF) {
				return false, s.srcErr
			}
			return false, io.EOF
		}
		if s.buf[s.ip] != 0 {
			break
		}
		s.ip++
	}
	if bytes.HasPrefix(s.buf[s.ip:s.n], magic) {
		return false, nil
	}
	return true, io.EOF
}
