package kineto

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"tracelake/internal/freelist"
	"tracelake/internal/inflate"
	"tracelake/internal/unpack"
	"tracelake/schema"
)

// textReader reads the text of a trace from its stored form: gzip or zstd (one
// or many members, nested at most maxNestedGzip deep), UTF-16 or plain. A
// damaged stream ends early and says so in notes.
type textReader struct {
	src   *source
	r     io.Reader
	notes []note
	close []func()
}

const bufSize = 256 << 10

// buffers keeps the buffers of plain files.
var buffers = freelist.List[*bufio.Reader]{New: func() *bufio.Reader { return bufio.NewReaderSize(nil, bufSize) }}

// openText opens a stored form. gzip says how gzip is read; what is compressed
// again within is read in order.
func openText(src io.Reader, gzip inflate.Options) (*textReader, error) {
	t := &textReader{src: &source{r: src}}
	first := buffers.Get()
	first.Reset(t.src)
	br := first
	for depth := 0; ; depth++ {
		if depth > maxNestedGzip {
			return nil, reject("compressed more than %d times", maxNestedGzip)
		}
		layer, err := unpack.Open(br, gzip)
		if err != nil {
			return nil, err
		}
		if layer == nil {
			t.r = br
			if br == first { // a layer may read ahead of its end
				t.close = append(t.close, func() {
					br.Reset(nil)
					buffers.Put(br)
				})
			}
			return t, t.decodeText(br)
		}
		t.close = append(t.close, layer.Close)
		if depth > 0 {
			t.note(schema.NestedGzip, "compressed data inside compressed data")
		}
		br = bufio.NewReaderSize(&stopReader{t: t, r: layer}, bufSize)
		gzip = inflate.Options{}
	}
}

// decodeText deals with byte order marks.
func (t *textReader) decodeText(br *bufio.Reader) error {
	head, err := unpack.Head(br)
	if err != nil {
		return err
	}
	switch unpack.MarkOf(head) {
	case unpack.UTF8:
		_, _ = br.Discard(3)
		t.note(schema.ByteOrderMark, "UTF-8 byte order mark")
	case unpack.UTF16:
		t.note(schema.UTF16, "text is UTF-16")
		t.r = transform.NewReader(br, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder())
	case unpack.NoMark:
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
	var corrupt *inflate.CorruptError
	if failed := t.src.failed.Load(); err != nil && failed != nil {
		return *failed
	}
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		t.note(schema.GzipCut, "the compressed stream ends early")
	case errors.Is(err, inflate.ErrChecksum), errors.Is(err, zstd.ErrCRCMismatch):
		t.note(schema.GzipChecksum, "checksum of the compressed stream does not match")
	case errors.Is(err, inflate.ErrHeader), errors.As(err, &corrupt), isZstd(err):
		t.note(schema.StreamCorrupt, "the compressed stream is damaged: "+err.Error())
	default:
		return err // reading failed, which says nothing about the trace
	}
	return io.EOF
}

// blame is reject for a text that has been read to its end. Where its stored form is
// damaged, that may be why it is none.
func (t *textReader) blame(reason string) error {
	for _, n := range t.notes {
		if info, _ := schema.Describe(n.code); info.Severity == schema.DataLoss {
			reason += "; " + n.message + ": copy the file again"
		}
	}
	return reject("%s", reason)
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

// source remembers why reading failed: that says nothing about the trace,
// whatever a decompressor makes of it.
type source struct {
	r      io.Reader
	failed atomic.Pointer[error]
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed.Store(&err)
	}
	return n, err
}

// stopReader ends at the first error of a decompressor.
type stopReader struct {
	t    *textReader
	r    *unpack.Layer
	done bool
}

func (s *stopReader) Read(p []byte) (int, error) {
	if s.done {
		return 0, io.EOF
	}
	n, err := s.r.Read(p)
	if err == nil {
		return n, nil
	}
	s.done = true
	if s.r.Trailing() {
		s.t.note(schema.TrailingBytes, "bytes behind the compressed stream")
	}
	return n, s.t.ended(err)
}
