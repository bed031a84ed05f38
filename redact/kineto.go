package redact

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxValue bounds one event and one header value.
const maxValue = 64 << 20

// Kineto copies the text of a Kineto or Chrome trace and replaces what the
// policy says. Every byte outside of replaced texts stays. The copy is worth
// nothing where an error is returned.
func Kineto(p *Policy, in io.Reader, out io.Writer) error {
	c := &copier{in: bufio.NewReaderSize(in, 1<<18), out: bufio.NewWriterSize(out, 1<<18), rules: map[[3]string]*rule{}}
	c.r = rewriter{p: p}
	if err := c.document(); err != nil {
		return err
	}
	return c.out.Flush()
}

// copier reads a trace one event or header value at a time.
type copier struct {
	in  *bufio.Reader
	out *bufio.Writer
	r   rewriter
	off int64
	buf []byte

	rules map[[3]string]*rule // of events, by phase, category and name of metadata
}

// maxRules bounds the rules that are remembered.
const maxRules = 1024

// rule returns the rule of an event.
func (c *copier) rule(v []byte) *rule {
	if v[0] != '{' {
		return unknown
	}
	s := shallow(v, "ph", "cat", "name")
	k := [3]string{s["ph"], s["cat"]}
	if k[0] == "M" {
		k[2] = s["name"]
	}
	if rl, ok := c.rules[k]; ok {
		return rl
	}
	rl := eventRule(k[0], k[1], k[2])
	if len(c.rules) < maxRules {
		c.rules[k] = rl
	}
	return rl
}

func (c *copier) fail(what string) error { return &SyntaxError{Offset: c.off, What: what} }

// peek copies white space and returns the next character.
func (c *copier) peek() (byte, error) {
	for {
		b, err := c.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, c.fail("the text ends early")
		}
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return b, c.in.UnreadByte()
		}
		c.off++
		if err := c.out.WriteByte(b); err != nil {
			return 0, err
		}
	}
}

// take copies one of the given characters.
func (c *copier) take(any string, what string) (byte, error) {
	b, err := c.peek()
	if err != nil {
		return 0, err
	}
	if bytes.IndexByte([]byte(any), b) < 0 {
		return 0, c.fail(what)
	}
	if _, err := c.in.ReadByte(); err != nil {
		return 0, err
	}
	c.off++
	return b, c.out.WriteByte(b)
}

// read reads the next value whole, without writing it.
func (c *copier) read() ([]byte, error) {
	if _, err := c.peek(); err != nil {
		return nil, err
	}
	c.buf = c.buf[:0]
	depth, inString, escaped := 0, false, false
	for {
		b, err := c.in.ReadByte()
		if errors.Is(err, io.EOF) {
			c.off += int64(len(c.buf))
			return nil, c.fail("the text ends early")
		}
		if err != nil {
			return nil, err
		}
		if !inString && depth == 0 && len(c.buf) > 0 && isEnd(b) {
			return c.buf, c.in.UnreadByte()
		}
		if len(c.buf) == maxValue {
			return nil, c.fail(fmt.Sprintf("a value is longer than %d bytes", maxValue))
		}
		c.buf = append(c.buf, b)
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = b == '\\'
			inString = b != '"'
			if !inString && depth == 0 {
				return c.buf, nil
			}
		case b == '"':
			inString = true
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth--; depth <= 0 {
				return c.buf, nil
			}
		}
	}
}

// rewrite writes a value by a rule.
func (c *copier) rewrite(b []byte, rl *rule) error {
	c.r.b, c.r.off, c.r.out = b, c.off, c.r.out[:0]
	end, err := c.r.value(0, rl, 0)
	if err != nil {
		return err
	}
	if end != len(b) {
		return c.r.fail(end, "the text is not JSON")
	}
	c.off += int64(len(b))
	_, err = c.out.Write(c.r.out)
	return err
}

func (c *copier) document() error {
	b, err := c.peek()
	if err != nil {
		return err
	}
	if b != '{' && b != '[' {
		return &SyntaxError{Offset: c.off, What: "no trace: neither JSON of Kineto nor an export of Nsight Systems", Foreign: true}
	}
	if _, err := c.take("{[", ""); err != nil {
		return err
	}
	if b == '[' {
		err = c.events()
	} else {
		err = c.header()
	}
	if err != nil {
		return err
	}
	for {
		b, err := c.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return c.fail("more text behind the trace")
		}
		c.off++
		if err := c.out.WriteByte(b); err != nil {
			return err
		}
	}
}

// header copies the members of the trace's object behind its bracket.
func (c *copier) header() error {
	if b, err := c.peek(); err != nil {
		return err
	} else if b == '}' {
		return c.fail("no trace: a JSON object without a traceEvents list")
	}
	seen := false
	for {
		key, err := c.read()
		if err != nil {
			return err
		}
		// The key and its rule, the way the members of an object get theirs.
		c.r.b, c.r.off, c.r.out = append(key, ':'), c.off, c.r.out[:0]
		name, _, err := c.keyText()
		if err != nil {
			return err
		}
		_, rl, err := c.r.key(0, headerRule)
		if err != nil {
			return err
		}
		if _, err := c.out.Write(c.r.out[:len(c.r.out)-1]); err != nil {
			return err
		}
		c.off += int64(len(key))
		if _, err := c.take(":", "a colon is missing"); err != nil {
			return err
		}
		b, err := c.peek()
		if err != nil {
			return err
		}
		if name == "traceEvents" && b == '[' {
			seen = true
			if _, err := c.take("[", ""); err != nil {
				return err
			}
			err = c.events()
		} else {
			var v []byte
			if v, err = c.read(); err == nil {
				err = c.rewrite(v, rl)
			}
		}
		if err != nil {
			return err
		}
		if b, err = c.take(",}", "a comma or bracket is missing"); err != nil {
			return err
		}
		if b == '}' {
			break
		}
	}
	if !seen {
		return c.fail("no trace: a JSON object without a traceEvents list")
	}
	return nil
}

func (c *copier) keyText() (string, int, error) {
	if c.r.b[0] != '"' {
		return "", 0, c.fail("a key is missing")
	}
	return c.r.quoted(0)
}

// headerRule is the rule of the trace's object.
var headerRule = func() *rule {
	members := map[string]*rule{"traceEvents": unknown}
	for k, r := range headerRules {
		members[k] = r
	}
	return &rule{members: members}
}()

// events copies a list of events behind its bracket.
func (c *copier) events() error {
	if b, err := c.peek(); err != nil {
		return err
	} else if b == ']' {
		_, err := c.take("]", "")
		return err
	}
	for {
		v, err := c.read()
		if err != nil {
			return err
		}
		if err := c.rewrite(v, c.rule(v)); err != nil {
			return err
		}
		b, err := c.take(",]", "a comma or bracket is missing")
		if err != nil {
			return err
		}
		if b == ']' {
			return nil
		}
	}
}
