package kineto

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"tracelake/schema"
)

// meaning is what a trace says, whatever its form: rows of all tables, header,
// totals, and how often each diagnostic occurs.
type meaning struct {
	rows   []string // by event
	other  []string
	events int64
}

// meaningOf reads a form of a trace. Diagnostics that tell of the form itself
// are left out.
func meaningOf(t *testing.T, form []byte, o Options) meaning {
	t.Helper()
	byEvent, res, err := readRows(t, form, o)
	if err != nil {
		return meaning{other: []string{"rejected"}}
	}
	m := meaning{events: res.Events}
	for _, rows := range byEvent {
		for _, r := range rows {
			m.rows = append(m.rows, r.text())
		}
	}
	slices.Sort(m.rows)
	for _, c := range schema.Codes {
		switch c.Code {
		case schema.ByteOrderMark, schema.UTF16, schema.NestedGzip:
			continue
		}
		if n := res.Diags.Count(c.Code); n > 0 {
			m.other = append(m.other, fmt.Sprintf("%s %d", c.Code, n))
		}
	}
	for k, n := range res.Kinds {
		k.Category = canonical(k.Category)
		m.other = append(m.other, fmt.Sprintf("%q %d", k, n))
	}
	slices.Sort(m.other)
	m.other = append(m.other, headerLine(&res.Header), fmt.Sprint(res.Events, res.Rows, res.BaseNS, res.Fine, res.First, res.Last, res.ZeroLost, res.Absolute, res.Array))
	return m
}

func headerLine(h *Header) string {
	c := *h
	c.ProcessGroups.V = canonical(c.ProcessGroups.V)
	c.Rest = map[string]json.RawMessage{}
	for k, v := range h.Rest {
		c.Rest[k] = json.RawMessage(canonical(string(v)))
	}
	c.Devices = slices.Clone(h.Devices)
	for i := range c.Devices {
		c.Devices[i].Rest = canonical(c.Devices[i].Rest)
	}
	rest := fmt.Sprintf("%s", c.Rest)
	c.Rest = nil
	return fmt.Sprintf("%+v %s", c, rest)
}

func (r *row) text() string {
	cols := make([]string, 0, len(r.cols))
	for k, v := range r.cols {
		if s, ok := v.(string); ok {
			v = canonical(s)
		}
		cols = append(cols, fmt.Sprintf("%s=%v", k, v))
	}
	slices.Sort(cols)
	return r.table + " " + strings.Join(cols, " ")
}

// canonical writes JSON values without regard to the order of keys; other text
// stays.
func canonical(s string) string {
	if s == "" || s[0] != '{' && s[0] != '[' && s[0] != '"' {
		return s
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return s
	}
	return string(b)
}

// without returns the rows without a column.
func without(rows []string, column string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		words := strings.Split(r, " ")
		words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, column+"=") })
		out[i] = strings.Join(words, " ")
	}
	slices.Sort(out)
	return out
}

func (m *meaning) diff(o *meaning) string {
	for i := range min(len(m.rows), len(o.rows)) {
		if m.rows[i] != o.rows[i] {
			return fmt.Sprintf("row %d\n%s\n%s", i, m.rows[i], o.rows[i])
		}
	}
	if len(m.rows) != len(o.rows) {
		return fmt.Sprintf("%d and %d rows", len(m.rows), len(o.rows))
	}
	if slices.Equal(m.other, o.other) {
		return ""
	}
	for i := range min(len(m.other), len(o.other)) {
		if m.other[i] != o.other[i] {
			return fmt.Sprintf("totals\n%s\n%s", m.other[i], o.other[i])
		}
	}
	return fmt.Sprintf("totals\n%s\n%s", m.other, o.other)
}

// forms are ways to write one trace that must not show in the tables. nil
// means that a trace has no such form.
var forms = map[string]func(*rand.Rand, *tree) []byte{
	"compact": func(_ *rand.Rand, t *tree) []byte { return t.text() },
	"indented": func(r *rand.Rand, t *tree) []byte {
		var b bytes.Buffer
		if json.Indent(&b, t.text(), "", strings.Repeat(" ", r.IntN(5))) != nil {
			return nil
		}
		return b.Bytes()
	},
	"odd white space": func(r *rand.Rand, t *tree) []byte {
		s := plain()
		s.gap = func() string { return []string{"", "", " ", "\n", "\r\n\t", "   "}[r.IntN(6)] }
		return t.write(nil, s)
	},
	"escapes": func(r *rand.Rand, t *tree) []byte {
		s := plain()
		s.text = escapeSome(r)
		return t.write(nil, s)
	},
	"other order of keys": func(r *rand.Rand, t *tree) []byte {
		t = t.clone()
		equal := false
		t.each(func(o *tree) {
			seen := map[string]bool{}
			for _, k := range o.keys {
				var plain string
				_ = json.Unmarshal([]byte(k), &plain)
				if s, ok := argSlot[plain]; ok { // two spellings of one argument
					plain = slots[s].name
				}
				equal = equal || seen[plain]
				seen[plain] = true
			}
			r.Shuffle(len(o.keys), func(i, j int) {
				o.keys[i], o.keys[j] = o.keys[j], o.keys[i]
				o.kids[i], o.kids[j] = o.kids[j], o.kids[i]
			})
		})
		if equal {
			return nil // the order of equal keys counts
		}
		return t.text()
	},
	"byte order mark": func(_ *rand.Rand, t *tree) []byte { return append([]byte("\xef\xbb\xbf"), t.text()...) },
	"UTF-16": func(r *rand.Rand, t *tree) []byte {
		text := t.text()
		if !utf8.Valid(text) {
			return nil
		}
		little := r.IntN(2) == 0
		var out []byte
		for _, u := range append([]uint16{0xfeff}, utf16.Encode([]rune(string(text)))...) {
			if little {
				out = append(out, byte(u), byte(u>>8))
			} else {
				out = append(out, byte(u>>8), byte(u))
			}
		}
		return out
	},
	"gzip members": func(r *rand.Rand, t *tree) []byte {
		var out bytes.Buffer
		pieces(r, t.text(), func(p []byte) {
			z, _ := gzip.NewWriterLevel(&out, r.IntN(10))
			_, _ = z.Write(p)
			_ = z.Close()
		})
		return out.Bytes()
	},
	"gzip blocks": func(r *rand.Rand, t *tree) []byte {
		text := t.text()
		return blocks(text, 1+r.IntN(min(len(text), 60_000)))
	},
	"zstd frames": func(r *rand.Rand, t *tree) []byte {
		var out bytes.Buffer
		pieces(r, t.text(), func(p []byte) {
			z, _ := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(r.IntN(2) == 0))
			_, _ = z.Write(p)
			_ = z.Close()
		})
		return out.Bytes()
	},
	"gzip in zstd": func(_ *rand.Rand, t *tree) []byte { return zstandard(gzipped(t.text())) },
}

// pieces cuts a text at up to five places.
func pieces(r *rand.Rand, text []byte, f func([]byte)) {
	for range r.IntN(6) {
		n := r.IntN(len(text) + 1)
		f(text[:n])
		text = text[n:]
	}
	f(text)
}

// options are ways to read that must not show either.
func anyOptions(r *rand.Rand, n int) Options {
	return Options{Workers: 1 + r.IntN(3), ChunkSize: max(200, n/(1+r.IntN(20))), RowGroup: 1 + r.IntN(100)}
}

// checkForms reads a trace in every form.
func checkForms(t *testing.T, r *rand.Rand, doc *tree) {
	t.Helper()
	text := doc.text()
	want := meaningOf(t, text, Options{Workers: 1})
	names := make([]string, 0, len(forms))
	for name := range forms {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		form := forms[name](r, doc)
		if form == nil {
			continue
		}
		got := meaningOf(t, form, anyOptions(r, len(text)))
		if d := want.diff(&got); d != "" {
			t.Fatalf("%s: %s", name, d)
		}
	}
	checkOrder(t, r, doc, &want)
	checkSplit(t, r, doc, &want)
}

// moves reports whether an event means the same at another place: begin and end
// events are paired in their order.
func (t *tree) moves() bool {
	ph := t.get("ph")
	return t.raw == "{" && ph != nil && ph.raw == `"X"`
}

// checkOrder moves events: only event_index may show it.
func checkOrder(t *testing.T, r *rand.Rand, doc *tree, want *meaning) {
	t.Helper()
	doc = doc.clone()
	var at []int
	events := doc.events().kids
	for i, e := range events {
		if e.moves() {
			at = append(at, i)
		}
	}
	r.Shuffle(len(at), func(i, j int) { events[at[i]], events[at[j]] = events[at[j]], events[at[i]] })
	got := meaningOf(t, doc.text(), anyOptions(r, 10_000))
	a, b := meaning{rows: without(want.rows, "event_index"), other: want.other}, meaning{rows: without(got.rows, "event_index"), other: got.other}
	if d := a.diff(&b); d != "" {
		t.Fatalf("other order of events: %s", d)
	}
}

// checkSplit cuts the events into two traces with the same header, which have
// the rows of the whole together.
func checkSplit(t *testing.T, r *rand.Rand, doc *tree, want *meaning) {
	t.Helper()
	all := doc.events().kids
	if len(all) < 2 || reflect.DeepEqual(want.other, []string{"rejected"}) || slices.ContainsFunc(all, func(e *tree) bool { return !e.moves() && e.raw != "{" }) {
		return
	}
	for _, e := range all {
		if ph := e.get("ph"); ph == nil || ph.raw == `"B"` || ph.raw == `"E"` {
			return
		}
	}
	cut := 1 + r.IntN(len(all)-1)
	var rows []string
	for _, part := range [][]*tree{all[:cut], all[cut:]} {
		half := doc.clone()
		half.events().kids = part
		m := meaningOf(t, half.text(), anyOptions(r, 10_000))
		rows = append(rows, m.rows...)
	}
	a, b := meaning{rows: without(want.rows, "event_index")}, meaning{rows: without(rows, "event_index")}
	if d := a.diff(&b); d != "" {
		t.Fatalf("in two traces: %s", d)
	}
}

// TestForms checks that white space, escapes, the order of keys and events,
// compression, encoding and chunks do not show in any table.
func TestForms(t *testing.T) {
	names, byName := traces(t)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(11, uint64(i)))
			checkForms(t, r, byName[name].someEvents(r, 60))
		})
	}
}

// FuzzForms does the same with arbitrary traces.
func FuzzForms(f *testing.F) {
	names, byName := traces(f)
	for i, name := range names {
		if i%8 > 0 {
			continue // TestForms has all of them
		}
		r := rand.New(rand.NewPCG(12, uint64(i)))
		f.Add(byName[name].someEvents(r, 6).text(), uint64(i))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		if len(text) > 1<<14 {
			t.Skip()
		}
		doc := parseTree(text)
		if doc == nil || doc.raw != "[" && doc.raw != "{" || doc.events() == nil {
			t.Skip()
		}
		checkForms(t, rand.New(rand.NewPCG(13, seed)), doc)
	})
}
