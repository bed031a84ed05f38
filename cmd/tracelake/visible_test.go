package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"kernel<float>(ü, 名)\n\tend":    "kernel<float>(ü, 名)\n\tend",
		"\x1b[31mred\x07\r\x7f":         `\x1b[31mred\x07\x0d\x7f`,
		"a\u202eb\u009bc":               `a\u202eb\u009bc`,
		"bad\xff\xfebytes \xe2\x82 cut": `bad\xff\xfebytes \xe2\x82 cut`,
	} {
		for cut := range len(text) + 1 { // in two writes
			var b bytes.Buffer
			v := &visible{w: &b}
			for _, part := range []string{text[:cut], text[cut:]} {
				if n, err := v.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := b.String(); got != want {
				t.Errorf("%q in two at %d: %q, want %q", text, cut, got, want)
			}
		}
	}
}

// TestNamesOnTerminal: what names of files hold does nothing to a terminal,
// whatever is said of them.
func TestNamesOnTerminal(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	for name, text := range map[string]string{
		"\x1b]0;title\x07.json": `{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "\u001b[2J", "pid": 0, "tid": 7, "ts": 1, "dur": 2}]}`,
		"a\nok  b.json":         `{"traceEvents": [{"ph": "X", "ca`,
		"bad\xff\x9b.json":      `{`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lake := filepath.Join(t.TempDir(), "la\x1bke")
	for _, args := range [][]string{
		{"convert", dir, "-o", lake},
		{"convert", dir, "-o", filepath.Join(dir, "bad\xff\x9b.json")},
		{"convert", filepath.Join(dir, "no\x1bne"), "-o", lake},
		{"\x1b[2J"},
	} {
		_, said := saying(t, args)
		for _, line := range strings.Split(said, "\n") {
			if strings.IndexFunc(line, unicode.IsControl) >= 0 || !strings.HasPrefix(line, "ok") && strings.HasPrefix(line, "ok  b.json") {
				t.Errorf("%q", line)
			}
		}
		if len(said) < 20 {
			t.Errorf("%v: %q", args, said)
		}
	}
}
