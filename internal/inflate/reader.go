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
	d        *decoder
	text     []byte // decoded and not yet handed out
	crc      uint32
	size     uint32
	members  int
	inText   bool
	trailing bool
	err      error

	workers int
	run     func(func())
	queue   []*batch // of blocks, in order
	current *batch   // whose text is handed out
	spare   []*batch
}

// Options says how to read a stream. The zero value is usable.
type Options struct {
	Workers int          // goroutines that decompress blocks, where the stream is made of such
	Run     func(func()) // runs the work of one of them; nil means at once
}

// readers keeps windows and tables from stream to stream.
var readers = freelist.List[*Reader]{New: func() *Reader { return &Reader{d: newDecoder()} }}

// Open returns a reader of src, from which it reads ahead.
func Open(src io.Reader, o Options) *Reader {
	r := readers.Get()
	r.d.reset(src)
	r.workers, r.run = o.Workers, o.Run
	return r
}

// Close ends the use of a reader.
func (r *Reader) Close() {
	for _, b := range r.queue {
		<-b.done
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
	if !r.inText {
		if r.nextBatch() {
			return nil
		}
		if err := r.header(); err != nil {
			return err
		}
		d.begin()
		r.crc, r.size, r.inText = 0, 0, true
	}
	d.slide()
	from := d.wr
	err := d.more()
	r.text = d.win[from:d.wr]
	r.crc = crc32.Update(r.crc, crc32.IEEETable, r.text)
	r.size += uint32(len(r.text))
	if errors.Is(err, io.EOF) {
		r.inText = false
		return r.trailer()
	}
	return err
}

func (r *Reader) trailer() error {
	b, err := r.bytes(8)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(b) != r.crc || binary.LittleEndian.Uint32(b[4:]) != r.size {
		return ErrChecksum
	}
	return nil
}

// bytes takes k whole bytes of the stream; they are valid until more is taken.
func (r *Reader) bytes(k int) ([]byte, error) {
	d := r.d
	d.giveBack()
	d.bb, d.bl = 0, 0 // the rest of the last byte of a stream means nothing
	d.want(k)
	if d.n-d.ip < k {
		return nil, d.cut()
	}
	d.ip += k
	return d.buf[d.ip-k : d.ip], nil
}

const (
	flagHeaderCRC = 1 << 1
	flagExtra     = 1 << 2
	flagName      = 1 << 3
	flagComment   = 1 << 4

	maxHeaderText = 512 // bytes of a name or a comment, as other readers have it
)

var magic = []byte{0x1f, 0x8b}

// header reads the header of the next member. It returns io.EOF where no
// member follows.
func (r *Reader) header() error {
	if r.members > 0 {
		if err := r.skipPadding(); err != nil {
			return err
		}
	}
	h, err := r.bytes(10)
	if err != nil {
		return err
	}
	r.members++
	flags := h[3]
	if !bytes.HasPrefix(h, magic) || h[2] != 8 || flags>>5 != 0 {
		return ErrHeader
	}
	crc := crc32.ChecksumIEEE(h)
	if flags&flagExtra != 0 {
		b, err := r.bytes(2)
		if err != nil {
			return err
		}
		crc = crc32.Update(crc, crc32.IEEETable, b)
		if crc, err = r.skip(int(binary.LittleEndian.Uint16(b)), crc); err != nil {
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
			b, err := r.bytes(1)
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
		b, err := r.bytes(2)
		if err != nil {
			return err
		}
		if binary.LittleEndian.Uint16(b) != uint16(crc) {
			return ErrHeader
		}
	}
	return nil
}

func (r *Reader) skip(n int, crc uint32) (uint32, error) {
	for n > 0 {
		b, err := r.bytes(min(n, 4096))
		if err != nil {
			return 0, err
		}
		crc = crc32.Update(crc, crc32.IEEETable, b)
		n -= len(b)
	}
	return crc, nil
}

// skipPadding skips zeros behind a member. It returns io.EOF unless another
// member follows.
func (r *Reader) skipPadding() error {
	d := r.d
	for {
		d.want(2)
		if d.ip == d.n {
			if !errors.Is(d.srcErr, io.EOF) {
				return d.srcErr
			}
			return io.EOF
		}
		if d.buf[d.ip] != 0 {
			break
		}
		d.ip++
	}
	if bytes.HasPrefix(d.buf[d.ip:d.n], magic) {
		return nil
	}
	r.trailing = true
	return io.EOF
}
