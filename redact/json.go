package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"tracelake/kineto"
)

// maxNesting bounds how deep values lie in each other.
const maxNesting = 1000

// SyntaxError says where a text is not the JSON of a trace.
type SyntaxError struct {
	Offset  int64 // in the decompressed text
	What    string
	Foreign bool // nothing that a trace holds was found
}

func (e *SyntaxError) Error() string {
	if e.Foreign {
		return e.What
	}
	return fmt.Sprintf("%s at byte %d; \"tracelake slice FILE -o CLEAN.json\" writes what can be read of it as a clean trace", e.What, e.Offset)
}

// rule says what becomes of a value.
type rule struct {
	// text decides about strings; nil replaces them.
	text func(*Policy, string) string
	// number decides about numbers; nil writes null.
	number func(*Policy, []byte) []byte
	// members are the known keys of an object, which stay; others are replaced,
	// with all that they hold.
	members map[string]*rule
	// key, where set, decides about keys that are not known, and rest about
	// their values.
	key  func(*Policy, string) string
	rest *rule
	// elem is the rule of the elements of a list; nil is the rule itself.
	elem *rule
}

func same(_ *Policy, b []byte) []byte { return b }

func hidden(p *Policy, s string) string { return p.replace(kindValue, s) }

// unknown is the rule for what is not known to be safe.
var unknown = &rule{}

// numbers is the rule for numbers, and texts that hold some.
var numbers = &rule{text: (*Policy).number, number: same}

// texts makes a rule of a decision about texts.
func texts(f func(*Policy, string) string) *rule { return &rule{text: f, number: same} }

// rewriter copies JSON and replaces texts. Every other byte stays.
type rewriter struct {
	p   *Policy
	b   []byte
	off int64 // of b in the text
	out []byte
}

func (r *rewriter) fail(i int, what string) error {
	return &SyntaxError{Offset: r.off + int64(i), What: what}
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// value copies the value at i by a rule and returns where it ends.
func (r *rewriter) value(i int, rl *rule, depth int) (int, error) {
	if i >= len(r.b) {
		return 0, r.fail(i, "a value is missing")
	}
	if depth > maxNesting {
		return 0, r.fail(i, fmt.Sprintf("a value is nested deeper than %d", maxNesting))
	}
	switch r.b[i] {
	case '"':
		return r.text(i, rl)
	case '{':
		return r.object(i, rl, depth)
	case '[':
		return r.list(i, rl, depth)
	}
	return r.scalar(i, rl)
}

// quoted returns the text of the string at i and where it ends.
func (r *rewriter) quoted(i int) (text string, end int, err error) {
	end = stringEnd(r.b, i)
	if end < 0 {
		return "", 0, r.fail(i, "a string does not end")
	}
	raw := r.b[i:end]
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		for _, c := range raw {
			if c < ' ' {
				return "", 0, r.fail(i, "a string holds a control character")
			}
		}
		return string(raw[1 : len(raw)-1]), end, nil
	}
	if json.Unmarshal(raw, &text) != nil {
		return "", 0, r.fail(i, "a string is not JSON")
	}
	return text, end, nil
}

// stringEnd returns the position behind the string that starts at i, -1 where
// it does not end.
func stringEnd(b []byte, i int) int {
	for k := i + 1; k < len(b); k++ {
		switch b[k] {
		case '\\':
			k++
		case '"':
			return k + 1
		}
	}
	return -1
}

func (r *rewriter) text(i int, rl *rule) (int, error) {
	text, end, err := r.quoted(i)
	if err != nil {
		return 0, err
	}
	r.put(text, r.p.decide(rl, text), i, end)
	return end, nil
}

// put writes a text, with its own spelling where it is unchanged.
func (r *rewriter) put(before, after string, i, end int) {
	if before == after && utf8.Valid(r.b[i:end]) {
		r.out = append(r.out, r.b[i:end]...)
		return
	}
	r.out = kineto.AppendQuoted(r.out, after)
}

// scalar copies a number or word.
func (r *rewriter) scalar(i int, rl *rule) (int, error) {
	end := i
	for end < len(r.b) && !isEnd(r.b[end]) {
		end++
	}
	raw := r.b[i:end]
	switch string(raw) {
	case "true", "false", "null":
		r.out = append(r.out, raw...)
		return end, nil
	case "NaN", "Infinity", "-Infinity", "nan", "inf", "-inf", "-nan":
	default:
		if !json.Valid(raw) {
			return 0, r.fail(i, "the text is not JSON")
		}
	}
	if rl.number == nil {
		r.out = append(r.out, "null"...)
		return end, nil
	}
	r.out = append(r.out, rl.number(r.p, raw)...)
	return end, nil
}

func isEnd(c byte) bool {
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ':' || c == '"' || c == '{' || c == '['
}

// gap copies white space.
func (r *rewriter) gap(i int) int {
	e := space(r.b, i)
	r.out = append(r.out, r.b[i:e]...)
	return e
}

func (r *rewriter) list(i int, rl *rule, depth int) (int, error) {
	elem := rl.elem
	if elem == nil {
		elem = rl
	}
	r.out = append(r.out, '[')
	i = r.gap(i + 1)
	if i < len(r.b) && r.b[i] == ']' {
		r.out = append(r.out, ']')
		return i + 1, nil
	}
	for {
		e, err := r.value(i, elem, depth+1)
		if err != nil {
			return 0, err
		}
		if i, err = r.next(e, ']'); err != nil {
			return 0, err
		}
		if r.b[i-1] == ']' {
			return i, nil
		}
		i = r.gap(i)
	}
}

// next copies the comma or closing bracket behind a value and returns the
// position behind it.
func (r *rewriter) next(i int, closing byte) (int, error) {
	i = r.gap(i)
	if i >= len(r.b) || r.b[i] != ',' && r.b[i] != closing {
		return 0, r.fail(i, "a comma or bracket is missing")
	}
	r.out = append(r.out, r.b[i])
	return i + 1, nil
}

func (r *rewriter) object(i int, rl *rule, depth int) (int, error) {
	r.out = append(r.out, '{')
	i = r.gap(i + 1)
	if i < len(r.b) && r.b[i] == '}' {
		r.out = append(r.out, '}')
		return i + 1, nil
	}
	for {
		v, member, err := r.key(i, rl)
		if err != nil {
			return 0, err
		}
		e, err := r.value(v, member, depth+1)
		if err != nil {
			return 0, err
		}
		if i, err = r.next(e, '}'); err != nil {
			return 0, err
		}
		if r.b[i-1] == '}' {
			return i, nil
		}
		i = r.gap(i)
	}
}

// key copies a key and what follows it; it returns where the value starts and
// its rule.
func (r *rewriter) key(i int, rl *rule) (int, *rule, error) {
	if i >= len(r.b) || r.b[i] != '"' {
		return 0, nil, r.fail(i, "a key is missing")
	}
	text, end, err := r.quoted(i)
	if err != nil {
		return 0, nil, err
	}
	member := rl.members[text]
	after := text
	if member == nil {
		f := rl.key
		if f == nil {
			f = func(p *Policy, s string) string { return p.replace(kindKey, s) }
		}
		after = f(r.p, text)
		member = rl.rest
		if member == nil {
			member = unknown
		}
	}
	r.put(text, after, i, end)
	i = r.gap(end)
	if i >= len(r.b) || r.b[i] != ':' {
		return 0, nil, r.fail(i, "a colon is missing")
	}
	r.out = append(r.out, ':')
	return r.gap(i + 1), member, nil
}

// shallow returns the values of the plain members of the object in b.
func shallow(b []byte, keys ...string) map[string]string {
	out := map[string]string{}
	i := space(b, 1)
	for i < len(b) && b[i] == '"' {
		e := stringEnd(b, i)
		if e < 0 {
			return out
		}
		var key string
		if json.Unmarshal(b[i:e], &key) != nil {
			return out
		}
		i = space(b, e)
		if i >= len(b) || b[i] != ':' {
			return out
		}
		i = space(b, i+1)
		v := valueEnd(b, i)
		if v < 0 {
			return out
		}
		for _, k := range keys {
			if k == key {
				text := ""
				if json.Unmarshal(b[i:v], &text) != nil {
					text = string(b[i:v])
				}
				out[k] = text
			}
		}
		if i = space(b, v); i >= len(b) || b[i] != ',' {
			return out
		}
		i = space(b, i+1)
	}
	return out
}

// valueEnd returns the position behind the value at i by its brackets, -1 where
// it does not end.
func valueEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			e := stringEnd(b, i)
			if e < 0 {
				return -1
			}
			i = e
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	if depth == 0 {
		return i
	}
	return -1
}

// integer replaces a number that is the ID of a process or thread.
func integer(p *Policy, b []byte) []byte {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return b
	}
	if r := p.pid(n); r != n {
		return strconv.AppendInt(nil, r, 10)
	}
	return b
}
