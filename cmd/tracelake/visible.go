package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// visible writes text of others to a terminal: names of files and of what traces
// hold must not move the cursor, change colours or turn text round. It shows
// what would, save for tabs and ends of lines.
type visible struct {
	w    io.Writer
	rest []byte // the beginning of a character
}

// shownStderr is standard error for text of others.
func shownStderr() io.Writer { return &visible{w: os.Stderr} }

// shownStdout is standard output; where it is no terminal every byte is as it was.
func shownStdout() io.Writer {
	if term.IsTerminal(int(os.Stdout.Fd())) {
		return &visible{w: os.Stdout}
	}
	return os.Stdout
}

func (v *visible) Write(p []byte) (int, error) {
	text := append(v.rest, p...)
	v.rest = nil
	end := len(text)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			v.rest = append(v.rest, text[i:]...)
			end = i
		}
	}
	if _, err := io.WriteString(v.w, shown(string(text[:end]), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// shown returns a text in which whatever a terminal obeys is spelt out.
func shown(s, but string) string {
	obeyed := func(r rune) bool {
		return (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) && !strings.ContainsRune(but, r)
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, obeyed) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < 0x80 && obeyed(r):
			fmt.Fprintf(&b, `\x%02x`, s[i:i+size])
		case obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
