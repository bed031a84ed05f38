// Package unpack opens texts that may be compressed. It is the one place that
// knows how each stored form begins and which decoder reads it.
package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"tracelake/internal/inflate"
)

// Form is how a text is stored.
type Form uint8

// Forms of texts.
const (
	Plain Form = iota
	Gzip
	Zstd
)

// String names the form.
func (f Form) String() string { return [...]string{"text", "gzip", "zstd"}[f] }

// Mark is the byte order mark that a text begins with.
type Mark uint8

// Byte order marks.
const (
	NoMark Mark = iota
	UTF8
	UTF16
)

// headBytes are enough to tell every form and mark.
const headBytes = 4

// FormOf tells the form of a text by its first bytes.
func FormOf(head []byte) Form {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return Gzip
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return Zstd
	case len(head) > 0 && head[0]&0xf0 == 0x50 && bytes.HasPrefix(head[1:], []byte{0x2a, 0x4d, 0x18}): // skippable frame, as pzstd writes first
		return Zstd
	}
	return Plain
}

// MarkOf tells the byte order mark of a text by its first bytes.
func MarkOf(head []byte) Mark {
	switch {
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		return UTF8
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return UTF16
	}
	return NoMark
}

// Head returns the first bytes of a text without taking them; fewer where the
// text ends.
func Head(br *bufio.Reader) ([]byte, error) {
	head, err := br.Peek(headBytes)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, err
}

// maxWindow bounds how far a zstd frame may look back, which is what it takes in
// memory: 128 MiB, as zstd --long does by default.
const maxWindow = 1 << 27

// Layer reads through one compression. It returns the errors of its decoder.
type Layer struct {
	Form Form
	gzip *inflate.Reader
	zstd *zstd.Decoder
}

// Open opens the outermost compression of a text, or returns nil where the text
// is plain.
func Open(br *bufio.Reader, blocks inflate.Options) (*Layer, error) {
	head, err := Head(br)
	if err != nil {
		return nil, err
	}
	switch FormOf(head) {
	case Gzip:
		return &Layer{Form: Gzip, gzip: inflate.Open(br, blocks)}, nil
	case Zstd:
		z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return &Layer{Form: Zstd, zstd: z}, nil
	case Plain:
	}
	return nil, nil
}

func (l *Layer) Read(p []byte) (int, error) {
	if l.gzip != nil {
		return l.gzip.Read(p)
	}
	return l.zstd.Read(p)
}

// Trailing reports, after the end, whether bytes follow that are neither zeros
// nor compressed. Of zstd they are an error of Read.
func (l *Layer) Trailing() bool { return l.gzip != nil && l.gzip.Trailing() }

// Close ends the use of the layer.
func (l *Layer) Close() {
	if l.gzip != nil {
		l.gzip.Close()
		return
	}
	l.zstd.Close()
}
