package compat

import (
	"strconv"
	"unicode/utf8"
)

// appendJSON appends the value as Python's json module writes it, in ASCII.
func (v *value) appendJSON(dst []byte) []byte {
	switch v.kind {
	case null:
		return append(dst, "null"...)
	case boolean:
		return strconv.AppendBool(dst, v.b)
	case text:
		return appendString(dst, v.s)
	case float:
		switch s := floatRepr(v.f); s {
		case "nan":
			return append(dst, "NaN"...)
		case "inf":
			return append(dst, "Infinity"...)
		case "-inf":
			return append(dst, "-Infinity"...)
		default:
			return append(dst, s...)
		}
	case array:
		dst = append(dst, '[')
		for i := range v.list {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = v.list[i].appendJSON(dst)
		}
		return append(dst, ']')
	case object:
		dst = append(dst, '{')
		for i := range v.obj {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendString(dst, v.obj[i].key)
			dst = append(dst, ": "...)
			dst = v.obj[i].val.appendJSON(dst)
		}
		return append(dst, '}')
	}
	return v.appendRepr(dst)
}

// appendString appends a text as an ASCII JSON string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 && i+3 <= len(s) { // a surrogate
			r, n = 0xd000|rune(s[i+1]&0x3f)<<6|rune(s[i+2]&0x3f), 3
		}
		i += n
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case ' ' <= r && r < utf8.RuneSelf:
			dst = append(dst, byte(r))
		case r >= 0x10000:
			r -= 0x10000
			dst = hexEscape(dst, 'u', 0xd800+r>>10, 4)
			dst = hexEscape(dst, 'u', 0xdc00+r&0x3ff, 4)
		default:
			dst = hexEscape(dst, 'u', r, 4)
		}
	}
	return append(dst, '"')
}
