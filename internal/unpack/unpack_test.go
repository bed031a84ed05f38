package unpack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"

	"tracelake/internal/inflate"
)

func zipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestLayers(t *testing.T) {
	text := bytes.Repeat([]byte("some text "), 1000)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		stored   []byte
		form     Form
		trailing bool
		err      error
	}{
		"gzip":          {zipped(t, text), Gzip, false, nil},
		"two members":   {append(zipped(t, text[:10]), zipped(t, text[10:])...), Gzip, false, nil},
		"padding":       {append(zipped(t, text), make([]byte, 100)...), Gzip, false, nil},
		"bytes behind":  {append(zipped(t, text), "more"...), Gzip, true, nil},
		"cut":           {zipped(t, text)[:30], Gzip, false, io.ErrUnexpectedEOF},
		"zstd":          {enc.EncodeAll(text, nil), Zstd, false, nil},
		"zstd of pzstd": {append([]byte{0x5a, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4}, enc.EncodeAll(text, nil)...), Zstd, false, nil},
		"zstd and more": {append(enc.EncodeAll(text, nil), "more"...), Zstd, false, zstd.ErrMagicMismatch},
	} {
		l, err := Open(bufio.NewReader(bytes.NewReader(c.stored)), inflate.Options{})
		if err != nil || l == nil {
			t.Fatalf("%s: %v, %v", name, l, err)
		}
		got, err := io.ReadAll(l)
		if !errors.Is(err, c.err) || err == nil && !bytes.Equal(got, text) || l.Form != c.form || l.Trailing() != c.trailing {
			t.Errorf("%s: %d bytes of %s, trailing %v: %v", name, len(got), l.Form, l.Trailing(), err)
		}
		l.Close()
	}
}

func TestPlain(t *testing.T) {
	for text, mark := range map[string]Mark{"": NoMark, "{": NoMark, "\xef\xbb\xbf{": UTF8, "\xff\xfe{\x00": UTF16, "\xfe\xff\x00{": UTF16} {
		br := bufio.NewReader(bytes.NewReader([]byte(text)))
		l, err := Open(br, inflate.Options{})
		head, herr := Head(br)
		if l != nil || err != nil || herr != nil || MarkOf(head) != mark {
			t.Errorf("%q: %v %v %v, mark %d", text, l, err, herr, MarkOf(head))
		}
		if all, err := io.ReadAll(br); err != nil || string(all) != text {
			t.Errorf("%q was read as %q: %v", text, all, err)
		}
	}
	if _, err := Open(bufio.NewReader(broken{}), inflate.Options{}); !errors.Is(err, errBroken) {
		t.Errorf("an error of the source became %v", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }
