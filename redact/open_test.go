package redact

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	zip := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := io.WriteString(z, s); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for stored, want := range map[string]string{
		"[]": "[]", "\xef\xbb\xbf[]": "[]", zip("[]"): "[]", zip("[") + zip("]"): "[]", zip("\xef\xbb\xbf[]"): "[]",
		zip(zip("[]")):               "compressed twice",
		"\xff\xfe[\x00]\x00":         "UTF-16",
		zip("[]") + "more":           "more bytes behind",
		zip("[]")[:len(zip("[]"))-4]: "gzip: unexpected EOF",
		"\x28\xb5\x2f\xfdzulu":       "zstd: ",
	} {
		r, err := Open(strings.NewReader(stored))
		if err == nil {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = r.Close()
			}
			if err == nil && string(text) != want {
				t.Errorf("%q: text %q, want %q", stored, text, want)
			}
		}
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", stored, err, want)
		}
	}
}
