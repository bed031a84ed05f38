package compat

import (
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a string, whose quote is next. A surrogate escape without its
// partner becomes three bytes, the way UTF-8 would encode it.
func (p *parser) string() (string, error) {
	quote := p.at
	p.at++
	start := p.at
	p.buf = p.buf[:0]
	for {
		if p.at >= len(p.text) {
			return "", p.fail("Unterminated string starting at", quote)
		}
		switch c := p.text[p.at]; {
		case c == '"':
			s := ""
			if len(p.buf) > 0 {
				p.buf = append(p.buf, p.text[start:p.at]...)
				s = string(p.buf)
			} else if p.build || p.depth <= 1 {
				s = string(p.text[start:p.at])
			}
			p.at++
			return s, nil
		case c < ' ':
			return "", p.fail("Invalid control character at", p.at)
		case c == '\\':
			p.buf = append(p.buf, p.text[start:p.at]...)
			if err := p.escape(quote); err != nil {
				return "", err
			}
			start = p.at
		default:
			p.at++
		}
	}
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (p *parser) escape(quote int) error {
	back := p.at
	p.at++
	c := p.peek()
	if p.at >= len(p.text) {
		return p.fail("Unterminated string starting at", quote)
	}
	p.at++
	if c != 'u' {
		if escapes[c] == 0 {
			return p.fail("Invalid \\escape", back)
		}
		p.buf = append(p.buf, escapes[c])
		return nil
	}
	r, ok := p.hex()
	if !ok {
		return p.fail("Invalid \\uXXXX escape", back+1)
	}
	if utf16.IsSurrogate(r) {
		after := p.at
		if r < 0xdc00 && p.at+1 < len(p.text) && p.text[p.at] == '\\' && p.text[p.at+1] == 'u' {
			p.at += 2
			if low, ok := p.hex(); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					p.buf = utf8.AppendRune(p.buf, pair)
					return nil
				}
			}
		}
		p.at = after
		p.buf = append(p.buf, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
		return nil
	}
	p.buf = utf8.AppendRune(p.buf, r)
	return nil
}

// hex reads four hexadecimal digits. Something must follow them, as Python
// wants it, since the string is not closed yet.
func (p *parser) hex() (r rune, ok bool) {
	if p.at+4 >= len(p.text) {
		return 0, false
	}
	for _, c := range p.text[p.at : p.at+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	p.at += 4
	return r, true
}
