package compat

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// str is Python's str(value): a text as it is and the repr of anything else.
func (v *value) str() string {
	if v.kind == text {
		return v.s
	}
	return string(v.appendRepr(nil))
}

func (v *value) appendRepr(dst []byte) []byte {
	switch v.kind {
	case null:
		return append(dst, "None"...)
	case boolean:
		if v.b {
			return append(dst, "True"...)
		}
		return append(dst, "False"...)
	case integer:
		if v.big != nil {
			return v.big.Append(dst, 10)
		}
		return strconv.AppendInt(dst, v.i, 10)
	case float:
		return append(dst, floatRepr(v.f)...)
	case text:
		return append(dst, repr(v.s)...)
	case array:
		dst = append(dst, '[')
		for i := range v.list {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = v.list[i].appendRepr(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i := range v.obj {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, repr(v.obj[i].key)...)
		dst = append(dst, ": "...)
		dst = v.obj[i].val.appendRepr(dst)
	}
	return append(dst, '}')
}

// floatRepr is the shortest text that reads back as f, with an exponent only
// below 1e-4 and from 1e16.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// repr is Python's repr of a text.
func repr(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	dst := []byte{quote}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 && i+3 <= len(s) { // a surrogate
			r, n = 0xd000|rune(s[i+1]&0x3f)<<6|rune(s[i+2]&0x3f), 3
		}
		i += n
		switch {
		case r == rune(quote) || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case unicode.IsPrint(r):
			dst = utf8.AppendRune(dst, r)
		case r < 0x100:
			dst = hexEscape(dst, 'x', r, 2)
		case r < 0x10000:
			dst = hexEscape(dst, 'u', r, 4)
		default:
			dst = hexEscape(dst, 'U', r, 8)
		}
	}
	return string(append(dst, quote))
}

func hexEscape(dst []byte, letter byte, r rune, width int) []byte {
	h := strconv.FormatInt(int64(r), 16)
	dst = append(dst, '\\', letter)
	for range width - len(h) {
		dst = append(dst, '0')
	}
	return append(dst, h...)
}
