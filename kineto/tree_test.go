package kineto

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// tree is a JSON value that keeps the order of keys, equal keys, and how
// scalars and strings are written.
type tree struct {
	raw  string   // a scalar or string as written, or "[" or "{"
	keys []string // as written, with quotes
	kids []*tree
}

// parseTree reads valid JSON; nil for anything else.
func parseTree(text []byte) *tree {
	if !json.Valid(text) {
		return nil
	}
	i := 0
	return parseValue(text, &i)
}

func parseValue(b []byte, i *int) *tree {
	space(b, i)
	if b[*i] != '[' && b[*i] != '{' {
		return &tree{raw: scalar(b, i)}
	}
	t := &tree{raw: string(b[*i])}
	for *i++; ; {
		space(b, i)
		switch b[*i] {
		case ']', '}':
			*i++
			return t
		case ',', ':':
			*i++
			continue
		}
		if t.raw == "{" && len(t.keys) == len(t.kids) {
			t.keys = append(t.keys, scalar(b, i))
			continue
		}
		t.kids = append(t.kids, parseValue(b, i))
	}
}

func space(b []byte, i *int) {
	for *i < len(b) && b[*i] <= ' ' {
		*i++
	}
}

func scalar(b []byte, i *int) string {
	from := *i
	if b[from] == '"' {
		for *i++; b[*i] != '"'; *i++ {
			if b[*i] == '\\' {
				*i++
			}
		}
		*i++
		return string(b[from:*i])
	}
	for *i < len(b) && !bytes.ContainsRune([]byte(",:]} \t\r\n"), rune(b[*i])) {
		*i++
	}
	return string(b[from:*i])
}

func (t *tree) clone() *tree {
	c := &tree{raw: t.raw, keys: slices.Clone(t.keys)}
	for _, k := range t.kids {
		c.kids = append(c.kids, k.clone())
	}
	return c
}

// get returns the last member of an object with a key that is written plainly.
func (t *tree) get(key string) *tree {
	for i := len(t.keys) - 1; i >= 0; i-- {
		if t.keys[i] == `"`+key+`"` {
			return t.kids[i]
		}
	}
	return nil
}

// events returns the event array of a trace, or nil.
func (t *tree) events() *tree {
	if t.raw == "[" {
		return t
	}
	if e := t.get(eventsKey); e != nil && e.raw == "[" {
		return e
	}
	return nil
}

// each calls f for a value and all that it holds.
func (t *tree) each(f func(*tree)) {
	f(t)
	for _, k := range t.kids {
		k.each(f)
	}
}

// style says how a tree is written.
type style struct {
	gap  func() string       // white space between two tokens
	text func(string) string // a string as written, rewritten
}

func plain() style {
	return style{func() string { return "" }, func(s string) string { return s }}
}

func (t *tree) write(dst []byte, s style) []byte {
	if t.raw != "[" && t.raw != "{" {
		if t.raw[0] == '"' {
			return append(dst, s.text(t.raw)...)
		}
		return append(dst, t.raw...)
	}
	dst = append(dst, t.raw...)
	for i, k := range t.kids {
		if i > 0 {
			dst = append(append(dst, s.gap()...), ',')
		}
		dst = append(dst, s.gap()...)
		if t.raw == "{" {
			dst = append(append(append(append(dst, s.text(t.keys[i])...), s.gap()...), ':'), s.gap()...)
		}
		dst = k.write(dst, s)
	}
	return append(append(dst, s.gap()...), map[string]byte{"[": ']', "{": '}'}[t.raw])
}

func (t *tree) text() []byte { return t.write(nil, plain()) }

// escapeSome writes some characters of a string as \u escapes.
func escapeSome(r *rand.Rand) func(string) string {
	return func(s string) string {
		if r.IntN(3) > 0 {
			return s
		}
		out := []byte{}
		for i := 0; i < len(s); {
			if s[i] == '\\' { // an escape stays
				n := 2
				if s[i+1] == 'u' {
					n = 6
				}
				out = append(out, s[i:i+n]...)
				i += n
				continue
			}
			c, n := utf8.DecodeRuneInString(s[i:])
			if i > 0 && i < len(s)-1 && c != utf8.RuneError && r.IntN(4) == 0 {
				for _, u := range utf16.Encode([]rune{c}) {
					out = append(out, '\\', 'u')
					for shift := 12; shift >= 0; shift -= 4 {
						digits := "0123456789abcdef"
						if r.IntN(2) == 0 {
							digits = "0123456789ABCDEF"
						}
						out = append(out, digits[u>>shift&15])
					}
				}
			} else {
				out = append(out, s[i:i+n]...)
			}
			i += n
		}
		return string(out)
	}
}

// someEvents returns a trace with a part of the events: some in a row and some
// from anywhere, in their order.
func (t *tree) someEvents(r *rand.Rand, n int) *tree {
	events := t.events()
	if len(events.kids) <= n {
		return t.clone()
	}
	keep := map[int]bool{}
	from := r.IntN(len(events.kids) - n/2)
	for i := range n / 2 {
		keep[from+i] = true
	}
	for range n - n/2 {
		keep[r.IntN(len(events.kids))] = true
	}
	part := &tree{raw: "["}
	for i, e := range events.kids {
		if keep[i] {
			part.kids = append(part.kids, e.clone())
		}
	}
	if t.raw == "[" {
		return part
	}
	c := &tree{raw: "{", keys: slices.Clone(t.keys)}
	for _, k := range t.kids {
		if k == events {
			c.kids = append(c.kids, part)
		} else {
			c.kids = append(c.kids, k.clone())
		}
	}
	return c
}

var realTrees = sync.OnceValue(func() map[string]*tree {
	out := map[string]*tree{}
	add := func(pattern string, most int64) {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			st, err := os.Stat(f)
			if err != nil || st.Size() > most {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			text := plainText(b)
			if len(text) > 8<<20 {
				continue
			}
			if t := parseTree(text); t != nil && (t.raw == "{" || t.raw == "[") && t.events() != nil {
				out[filepath.Join(filepath.Base(filepath.Dir(f)), filepath.Base(f))] = t
			}
		}
	}
	for _, dir := range []string{"visible", "own", "stormlog", "analyses"} {
		add("../testdata/"+dir+"/*.json*", 200<<10)
	}
	for _, deep := range []string{"/*", "/*/*"} {
		add(sharedDir()+"/traces/kineto"+deep+"/*.json*", 24<<10)
	}
	return out
})

// traces returns small real traces and cases as trees, by name in order.
func traces(t testing.TB) (names []string, byName map[string]*tree) {
	t.Helper()
	byName = realTrees()
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) < 50 {
		t.Fatalf("only %d traces", len(names))
	}
	return names, byName
}
