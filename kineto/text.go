package kineto

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// clean reports whether the inside of a string without backslashes is what
// JSON allows: no control characters, valid UTF-8.
func clean(s []byte) bool {
	ascii := true
	for _, c := range s {
		if c < ' ' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(s)
}

// unescape decodes the inside of a string, which may be broken: a string with
// an invalid escape is taken literally as a whole.
func unescape(dst, s []byte) (out []byte, f flaw) {
	out = dst
	start := len(dst)
	literal := false
	for i := 0; i < len(s) && !literal; {
		c := s[i]
		if c != '\\' {
			if c < ' ' {
				f |= flawControl
			}
			out = append(out, c)
			i++
			continue
		}
		if i+1 == len(s) {
			literal = true
			break
		}
		i += 2
		switch s[i-1] {
		case '"', '\\', '/':
			out = append(out, s[i-1])
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex4(s, i)
			if !ok {
				literal = true
				break
			}
			i += 4
			if utf16.IsSurrogate(r) {
				lo, ok := rune(0), false
				if i+1 < len(s) && s[i] == '\\' && s[i+1] == 'u' {
					lo, ok = hex4(s, i+2)
				}
				if p := utf16.DecodeRune(r, lo); ok && p != utf8.RuneError {
					r = p
					i += 6
				} else {
					r = utf8.RuneError // half a pair has no UTF-8 form
					f |= flawUTF8
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			literal = true
		}
	}
	if literal {
		f = flawEscape
		out = append(out[:start], s...)
		for _, c := range s {
			if c < ' ' {
				f |= flawControl
			}
		}
	}
	if !utf8.Valid(out[start:]) {
		f |= flawUTF8
		out = append(out[:start], toValid(out[start:])...)
	}
	return out, f
}

func toValid(s []byte) []byte {
	out := make([]byte, 0, len(s)+8)
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		out = utf8.AppendRune(out, r) // RuneError for a byte that fits nowhere
		s = s[n:]
	}
	return out
}

func hex4(s []byte, i int) (r rune, ok bool) {
	if i+4 > len(s) {
		return 0, false
	}
	for _, c := range s[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendQuoted appends s, which is valid UTF-8, as a JSON string.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// appendCompact appends the JSON value s without white space between its
// parts. Strings keep their spelling where it is valid; broken strings and
// bare words are mended, and a value that cannot be mended becomes a string
// that holds its text.
func appendCompact(dst, s []byte) (out []byte, f flaw) {
	start := len(dst)
	out = dst
	apart := true // no word stands right before the next one
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case isSpace(c):
			i++
		case c == '"':
			q := closing(s, i+1)
			if q < 0 {
				q = len(s)
			}
			in := s[i+1 : q]
			if json.Valid(s[i:min(q+1, len(s))]) && utf8.Valid(in) {
				out = append(out, s[i:q+1]...)
			} else {
				t, g := unescape(nil, in)
				f |= g
				out = appendQuoted(out, t)
			}
			i, apart = q+1, true
		case c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':':
			if (c == '}' || c == ']') && len(out) > start && out[len(out)-1] == ',' {
				out = out[:len(out)-1] // a comma before a closing bracket
				f |= flawWord
			}
			out = append(out, c)
			i, apart = i+1, true
		default:
			if !apart { // "1 2" must not become 12
				return appendQuoted(out[:start], toValid(s)), f | flawWord
			}
			e := i
			for e < len(s) && !isDelim(s[e]) && s[e] != ':' && s[e] != '"' && s[e] != '{' && s[e] != '[' {
				e++
			}
			w := s[i:e]
			switch {
			case json.Valid(w):
				out = append(out, w...)
			case string(w) == "NaN" || string(w) == "Infinity" || string(w) == "-Infinity":
				out = appendQuoted(out, w) // Python's words, which JSON lacks
			default:
				f |= flawWord
				out = appendQuoted(out, toValid(w))
			}
			i, apart = e, false
		}
	}
	if !json.Valid(out[start:]) {
		return appendQuoted(out[:start], toValid(s)), f | flawWord
	}
	return out, f
}

// closing returns the position of the quote that ends a string, or -1. Unlike
// stringEnd it needs no readable bytes behind s.
func closing(s []byte, i int) int {
	for ; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

// appendFloat appends a finite float as JSON.
func appendFloat(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'g', -1, 64) }

// appendMicros appends nanoseconds as a JSON number of microseconds, exactly.
func appendMicros(dst []byte, ns int64) []byte {
	if ns < 0 {
		dst = append(dst, '-')
	}
	u := uint64(ns)
	if ns < 0 {
		u = -u
	}
	dst = strconv.AppendUint(dst, u/1000, 10)
	if frac := u % 1000; frac > 0 {
		dst = append(dst, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
		dst = bytes.TrimRight(dst, "0")
	}
	return dst
}
