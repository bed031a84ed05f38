package redact

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"tracelake/internal/inflate"
	"tracelake/internal/unpack"
)

// Open returns the text of a trace that may be compressed. UTF-16 and text that
// was compressed twice are refused, and so is whatever follows a compressed text.
func Open(in io.Reader) (io.ReadCloser, error) {
	stored := bufio.NewReaderSize(in, 1<<18)
	layer, err := unpack.Open(stored, inflate.Options{})
	if err != nil {
		return nil, err
	}
	if layer == nil {
		return plainText(stored, func() {})
	}
	return plainText(bufio.NewReaderSize(whole{layer}, 1<<18), layer.Close)
}

// text is the text of a trace, with what ends its use.
type text struct {
	*bufio.Reader
	close func()
}

func (t text) Close() error {
	t.close()
	return nil
}

func plainText(b *bufio.Reader, shut func()) (io.ReadCloser, error) {
	head, err := unpack.Head(b)
	if err == nil && unpack.FormOf(head) != unpack.Plain {
		err = errors.New("compressed twice: unpack it once")
	}
	if err == nil {
		switch unpack.MarkOf(head) {
		case unpack.UTF16:
			err = errors.New("the text is UTF-16: convert it to UTF-8")
		case unpack.UTF8:
			_, err = b.Discard(3)
		case unpack.NoMark:
		}
	}
	if err != nil {
		shut()
		return nil, err
	}
	return text{b, shut}, nil
}

// whole reads a compressed text that has to be whole, and all there is.
type whole struct{ *unpack.Layer }

func (w whole) Read(p []byte) (int, error) {
	n, err := w.Layer.Read(p)
	switch {
	case err == nil:
	case !errors.Is(err, io.EOF):
		err = fmt.Errorf("%s: %w", w.Form, err)
	case w.Trailing():
		err = fmt.Errorf("%s: more bytes behind the compressed text", w.Form)
	}
	return n, err
}
