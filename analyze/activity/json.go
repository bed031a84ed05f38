package activity

import (
	"strconv"
	"unicode/utf8"

	"tracelake/schema"
)

const hexDigits = "0123456789abcdef"

// appendText appends a JSON string. Surrogates without a partner, which a
// strict reader of JSON keeps and stores the way UTF-8 would encode them, are
// written as escapes; other bytes that are not UTF-8 become U+FFFD.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			i++
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				if u, ok := surrogate(s[i:]); ok {
					dst = append(dst, '\\', 'u', 'd', hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
					i += 3
					continue
				}
			}
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return append(dst, '"')
}

// surrogate reads a surrogate code point stored in three bytes.
func surrogate(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

// appendOpt appends a text, or null where it is empty.
func appendOpt(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendText(dst, s)
}

// number returns the decimal text of a value of a column, or the given word
// where the value is unknown.
func number(t *schema.Trace, v int64, unknown string) string {
	if v == schema.Null {
		return unknown
	}
	if s, ok := t.Big[v]; ok {
		return s
	}
	return strconv.FormatInt(v, 10)
}

func (r *Result) appendNumber(dst []byte, v int64) []byte {
	if v == schema.Null {
		return append(dst, "null"...)
	}
	if s, ok := r.trace.Big[v]; ok {
		return append(dst, s...)
	}
	return strconv.AppendInt(dst, v, 10)
}
