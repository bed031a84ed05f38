package kineto

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"tracelake/schema"
)

// textReader reads the text of a trace from its stored form: gzip or zstd (one
// or many members, nested at most maxNestedGzip deep), UTF-16 or plain. A
// damaged stream ends early and says so in notes.
type textReader struct {
	r     io.Reader
	notes []note
	close []func()
}

const bufSize = 256 << 10

func openText(src io.Reader) (*textReader, error) {
	t := &textReader{}
	br := bufio.NewReaderSize(src, bufSize)
	for depth := 0; ; depth++ {
		if depth > maxNestedGzip {
			return nil, reject("compressed more than %d times", maxNestedGzip)
		}
		head, err := br.Peek(4)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		var inner io.Reader
		switch {
		case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
			inner = &gzipReader{t: t, src: br}
		case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
			z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<27))
			if err != nil {
				return nil, reject("zstd: %v", err)
			}
			t.close = append(t.close, z.Close)
			inner = &stopReader{t: t, r: z}
		default:
			t.r = br
			return t, t.decodeText(br, head)
		}
		if depth > 0 {
			t.note(schema.NestedGzip, "compressed data inside compressed data")
		}
		br = bufio.NewReaderSize(inner, bufSize)
	}
}

// decodeText deals with byte order marks.
func (t *textReader) decodeText(br *bufio.Reader, head []byte) error {
	switch {
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		_, _ = br.Discard(3)
		t.note(schema.ByteOrderMark, "UTF-8 byte order mark")
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		t.note(schema.UTF16, "text is UTF-16")
		t.r = transform.NewReader(br, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder())
	}
	return nil
}

func (t *textReader) note(code schema.Code, message string) {
	t.notes = append(t.notes, note{code: code, offset: schema.Null, member: schema.Null, message: message})
}

func (t *textReader) Read(p []byte) (int, error) { return t.r.Read(p) }

func (t *textReader) Close() {
	for _, c := range t.close {
		c()
	}
}

// ended turns the error that ended a compressed stream into a note.
func (t *textReader) ended(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		t.note(schema.GzipCut, "the compressed stream ends early")
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zstd.ErrCRCMismatch):
		t.note(schema.GzipChecksum, "checksum of the compressed stream does not match")
	case errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt), isZstd(err):
		t.note(schema.StreamCorrupt, "the compressed stream is damaged: "+err.Error())
	default:
		return err // reading failed, which says nothing about the trace
	}
	return io.EOF
}

func isZstd(err error) bool {
	for _, e := range []error{
		zstd.ErrReservedBlockType, zstd.ErrCompressedSizeTooBig, zstd.ErrBlockTooSmall, zstd.ErrUnexpectedBlockSize,
		zstd.ErrMagicMismatch, zstd.ErrWindowSizeExceeded, zstd.ErrWindowSizeTooSmall, zstd.ErrDecoderSizeExceeded,
		zstd.ErrUnknownDictionary, zstd.ErrFrameSizeExceeded, zstd.ErrFrameSizeMismatch,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return strings.Contains(err.Error(), "corrupt") || strings.Contains(err.Error(), "zstd") || strings.Contains(err.Error(), "huff") || strings.Contains(err.Error(), "fse")
}

// stopReader ends at the first error of a decompressor.
type stopReader struct {
	t *textReader
	r io.Reader
}

func (s *stopReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	return n, s.t.ended(err)
}

// gzipReader reads gzip members one after another. Zeros behind the last one
// are padding; other bytes are noted.
type gzipReader struct {
	t    *textReader
	src  *bufio.Reader
	z    *gzip.Reader
	done bool
}

func (g *gzipReader) Read(p []byte) (int, error) {
	for {
		if g.done {
			return 0, io.EOF
		}
		if g.z == nil {
			z, err := gzip.NewReader(g.src)
			if err != nil {
				return 0, g.stop(err)
			}
			z.Multistream(false)
			g.z = z
		}
		n, err := g.z.Read(p)
		if err == nil || n > 0 && errors.Is(err, io.EOF) {
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			return n, g.stop(err)
		}
		if more := g.nextMember(); !more {
			g.done = true
			return 0, io.EOF
		}
		if err := g.z.Reset(g.src); err != nil {
			return 0, g.stop(err)
		}
		g.z.Multistream(false)
	}
}

func (g *gzipReader) stop(err error) error {
	g.done = true
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return g.t.ended(err)
}

// nextMember skips padding and reports whether another member follows.
func (g *gzipReader) nextMember() bool {
	for {
		c, err := g.src.ReadByte()
		if err != nil {
			return false
		}
		if c == 0 {
			continue
		}
		_ = g.src.UnreadByte()
		if h, _ := g.src.Peek(2); len(h) == 2 && h[0] == 0x1f && h[1] == 0x8b {
			return true
		}
		g.t.note(schema.TrailingBytes, "bytes behind the compressed stream")
		return false
	}
}
