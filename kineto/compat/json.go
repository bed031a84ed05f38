package compat

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may nest; the reference's recursion
// limit lies there.
const maxDepth = 995

// maxDigits is the longest integer that Python converts.
const maxDigits = 4300

// parser reads the dialect of Python's json module: RFC 8259 plus NaN,
// Infinity and -Infinity. The text is valid UTF-8.
type parser struct {
	text  []byte
	at    int
	depth int
	build bool // make values; otherwise only check the text
	buf   []byte
}

// parse reads one document.
func parse(text []byte) (value, error) {
	p := parser{text: text, build: true}
	return p.document()
}

func (p *parser) document() (v value, err error) {
	if bytes.HasPrefix(p.text, []byte("\ufeff")) {
		return v, p.fail("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0)
	}
	p.space()
	if v, err = p.value(); err != nil {
		return v, err
	}
	if p.space(); p.at < len(p.text) {
		return v, p.fail("Extra data", p.at)
	}
	return v, nil
}

// fail returns the error of Python's decoder at a byte of the text.
func (p *parser) fail(msg string, at int) error {
	before := p.text[:min(at, len(p.text))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return refuse("%s: line %d column %d (char %d)", msg, line, column, utf8.RuneCount(before))
}

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) value() (v value, err error) {
	switch c := p.peek(); c {
	case '"':
		v.kind = text
		v.s, err = p.string()
		return v, err
	case '{':
		return p.nested(p.object)
	case '[':
		return p.nested(p.array)
	default:
		for _, w := range words {
			if bytes.HasPrefix(p.text[p.at:], []byte(w.word)) {
				p.at += len(w.word)
				return w.val, nil
			}
		}
		if c == '-' || '0' <= c && c <= '9' {
			return p.number()
		}
		return v, p.fail("Expecting value", p.at)
	}
}

var words = []struct {
	word string
	val  value
}{
	{"null", value{}},
	{"true", value{kind: boolean, b: true}},
	{"false", value{kind: boolean}},
	{"NaN", value{kind: float, f: math.NaN()}},
	{"Infinity", value{kind: float, f: math.Inf(1)}},
	{"-Infinity", value{kind: float, f: math.Inf(-1)}},
}

func (p *parser) nested(read func() (value, error)) (value, error) {
	if p.depth++; p.depth > maxDepth {
		return value{}, refuse("arrays and objects nest deeper than %d", maxDepth)
	}
	v, err := read()
	p.depth--
	return v, err
}

func (p *parser) array() (v value, err error) {
	v.kind = array
	p.at++
	if p.space(); p.peek() == ']' {
		p.at++
		return v, nil
	}
	for {
		item, err := p.value()
		if err != nil {
			return v, err
		}
		if p.build {
			v.list = append(v.list, item)
		}
		if end, err := p.next(']'); end || err != nil {
			return v, err
		}
	}
}

func (p *parser) object() (v value, err error) {
	v.kind = object
	var index map[string]int
	return v, p.fields(func(key string) error {
		val, err := p.value()
		if err == nil && p.build {
			index = v.set(key, val, index)
		}
		return err
	})
}

// fields reads an object and calls read at each value.
func (p *parser) fields(read func(key string) error) error {
	p.at++
	if p.space(); p.peek() == '}' {
		p.at++
		return nil
	}
	for {
		if p.peek() != '"' {
			return p.fail("Expecting property name enclosed in double quotes", p.at)
		}
		key, err := p.string()
		if err != nil {
			return err
		}
		if p.space(); p.peek() != ':' {
			return p.fail("Expecting ':' delimiter", p.at)
		}
		p.at++
		p.space()
		if err := read(key); err != nil {
			return err
		}
		if end, err := p.next('}'); end || err != nil {
			return err
		}
	}
}

// next reads a comma or the closing bracket.
func (p *parser) next(closing byte) (end bool, err error) {
	p.space()
	switch p.peek() {
	case closing:
		p.at++
		return true, nil
	case ',':
		p.at++
		p.space()
		return false, nil
	}
	return false, p.fail("Expecting ',' delimiter", p.at)
}

func (p *parser) number() (v value, err error) {
	start := p.at
	if p.text[p.at] == '-' {
		p.at++
	}
	switch c := p.peek(); {
	case c == '0':
		p.at++
	case '1' <= c && c <= '9':
		p.digits()
	default:
		return v, p.fail("Expecting value", start)
	}
	isFloat := false
	if end := p.at; p.peek() == '.' {
		p.at++
		if isFloat = p.digits() > 0; !isFloat {
			p.at = end
		}
	}
	if end := p.at; p.peek()|0x20 == 'e' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if p.digits() > 0 {
			isFloat = true
		} else {
			p.at = end
		}
	}
	literal := string(p.text[start:p.at])
	if isFloat {
		// Out of range is an infinity and no error.
		v.kind = float
		v.f, _ = strconv.ParseFloat(literal, 64)
		return v, nil
	}
	v, ok := parseInt(literal)
	if !ok {
		return v, refuse("Exceeds the limit (%d digits) for integer string conversion: value has %d digits; "+
			"use sys.set_int_max_str_digits() to increase the limit", maxDigits, len(literal))
	}
	return v, nil
}

// parseInt reads a sign and decimal digits.
func parseInt(s string) (v value, ok bool) {
	v.kind = integer
	var err error
	if v.i, err = strconv.ParseInt(s, 10, 64); err == nil {
		return v, true
	}
	digits := len(s)
	if s[0] == '-' || s[0] == '+' {
		digits--
	}
	if digits > maxDigits {
		return v, false
	}
	n, ok := new(big.Int).SetString(s, 10)
	return bigValue(n), ok
}

func bigValue(n *big.Int) value {
	if n.IsInt64() {
		return value{kind: integer, i: n.Int64()}
	}
	return value{kind: integer, big: n}
}

func (p *parser) digits() (n int) {
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.at++
		n++
	}
	return n
}
