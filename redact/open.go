package redact

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Open returns the text of a trace that may be compressed. UTF-16 and text that
// was compressed twice are refused.
func Open(in io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(in, 1<<18)
	r, err := inflate(b)
	if err != nil {
		return nil, err
	}
	text := bufio.NewReaderSize(r, 1<<18)
	head, err := text.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, r.Close())
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic), bytes.HasPrefix(head, zstdMagic):
		err = errors.New("compressed twice: unpack it once")
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		err = errors.New("the text is UTF-16: convert it to UTF-8")
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		_, err = text.Discard(3)
	default:
		err = nil
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{text, r}, nil
}

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

func inflate(b *bufio.Reader) (io.ReadCloser, error) {
	head, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return z, nil
	case bytes.HasPrefix(head, zstdMagic):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<27))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(b), nil
}
