package kineto

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"tracelake/schema"
)

// pythonReading is what testdata/reading.py makes of a document.
type pythonReading struct {
	Refused string           // the message of json.load
	Deep    bool             // nested too deep for it
	None    bool             // no array of events
	Members int              // of that array
	Kinds   map[string]int64 // events by phase and category; nil where some are no text
	Events  []struct {
		Index   int
		Table   *string // nil: none, or more than one
		Keys    json.RawMessage
		TS, Dur *int64
	}
}

// pythonChild answers documents as long as the tests run.
type pythonChild struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

var startPython = sync.OnceValues(func() (*pythonChild, error) {
	bin := os.Getenv("TRACELAKE_PYTHON")
	if bin == "" {
		bin = "../.venv/bin/python"
	}
	cmd := exec.Command(bin, "testdata/reading.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &pythonChild{in: in, out: bufio.NewReader(out)}, cmd.Start()
})

func (p *pythonChild) read(doc []byte) (r pythonReading, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err = p.in.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(doc))), doc...)); err != nil {
		return r, err
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(line, &r)
}

func python(t testing.TB) *pythonChild {
	t.Helper()
	p, err := startPython()
	if err != nil {
		t.Skipf("NOT COMPARED with Python's json: set TRACELAKE_PYTHON to a Python, or make .venv in the root of the repository (%v)", err)
	}
	return p
}

// checkPython reads a document as Python does and compares: what json.load
// refuses is never ok, and what it accepts has the same events.
func checkPython(t *testing.T, doc []byte) {
	t.Helper()
	want, err := python(t).read(doc)
	if err != nil {
		t.Fatalf("Python died: %v", err)
	}
	rows, res, err := readRows(t, doc, Options{Workers: 1})
	var rejected *RejectedError
	if err != nil && !errors.As(err, &rejected) {
		t.Fatal(err)
	}
	switch {
	case want.Deep:
	case want.Refused != "":
		if err == nil {
			if outcome, _ := res.Diags.Outcome(); outcome == "ok" {
				t.Fatalf("ok, though json.load refuses it: %s", want.Refused)
			}
		}
	case want.None:
		if err == nil && res.Events > 0 {
			t.Fatalf("%d events, though there is no array of events", res.Events)
		}
	case err != nil:
		if d := err.Error(); want.hasPhase() && !strings.Contains(d, "deeper") && !strings.Contains(d, "event arrays") {
			t.Fatalf("rejected, though json.load reads events: %v", err)
		}
	default:
		compareReading(t, &want, rows, res)
		if outcome, why := res.Diags.Outcome(); outcome != "ok" && strict(doc) {
			t.Fatalf("%s, though it is valid JSON: %s", outcome, why)
		}
	}
}

func (p *pythonReading) hasPhase() bool {
	for _, e := range p.Events {
		if bytes.Contains(e.Keys, []byte(`"ph":`)) {
			return true
		}
	}
	return false
}

// strict reports whether a document is JSON as the standard has it, and holds
// no half of a surrogate pair.
func strict(doc []byte) bool {
	return json.Valid(doc) && utf8.Valid(doc) && !bytes.Contains(bytes.ToLower(doc), []byte(`\ud`))
}

func compareReading(t *testing.T, want *pythonReading, rows map[int64][]row, res *Result) {
	t.Helper()
	if n := res.Diags.Count(schema.BrokenEvent) + res.Diags.Count(schema.TextCut); n > 0 || int(res.Events) != want.Members {
		t.Fatalf("%d events and %d lost, Python reads %d", res.Events, n, want.Members)
	}
	if want.Kinds != nil {
		got := map[string]int64{}
		for k, n := range res.Kinds {
			got[fmt.Sprintf("%q %q", k.Phase, k.Category)] += n
		}
		for k, n := range want.Kinds {
			var pair [2]string
			if err := json.Unmarshal([]byte(k), &pair); err != nil {
				t.Fatal(err)
			}
			if have := got[fmt.Sprintf("%q %q", pair[0], pair[1])]; have != n && len(want.Kinds) < 100 {
				t.Fatalf("%d events of kind %s, Python counts %d", have, k, n)
			}
		}
	}
	for _, e := range want.Events {
		if e.Table == nil {
			continue
		}
		got := rows[int64(e.Index)]
		if len(got) != 1 || got[0].table != *e.Table {
			t.Fatalf("event %d has rows %v, want one of %s: %s", e.Index, got, *e.Table, e.Keys)
		}
		comparePythonTimes(t, got[0], e.TS, e.Dur, res.BaseNS)
		d := json.NewDecoder(bytes.NewReader(e.Keys))
		d.UseNumber()
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			t.Fatalf("%s: %v", e.Keys, err)
		}
		checkEvent(t, e.Index, m, got[0], res.BaseNS)
	}
}

func comparePythonTimes(t *testing.T, r row, ts, dur *int64, base int64) {
	t.Helper()
	retained := r.table == "gpu_events" || r.table == "launches" || r.table == "ranges"
	if ts != nil && (retained || base == 0) && r.cols["start_ns"] != *ts {
		t.Fatalf("start_ns is %v, Python says %d: %v", r.cols["start_ns"], *ts, r.cols)
	}
	if dur != nil && (retained || r.table == "cpu_events") && r.cols["dur_ns"] != *dur {
		t.Fatalf("dur_ns is %v, Python says %d: %v", r.cols["dur_ns"], *dur, r.cols)
	}
}

// pieceList are texts that matter to readers of JSON.
var pieceList = strings.Fields(`{ } [ ] , : " \ / - + . e E 0 1 00 01 1. .5 -0 1e5 1E-3 1e400 0x1f 9223372036854775807 9223372036854775808
	123456789012345678901234567890 0.0005 1.00049999 NaN Infinity -Infinity nan inf null true false True None N/A "" "a" "1" "1.5" "0x10" "ts":1
	"ts":"2.5" "dur":-1 "ph":"X" "ph":"B" "ph":"C" "ph":1 "cat":"kernel" "cat":null "args":{} "args":null "args":[1] "args":{"stream":9}
	"stream":1.0 "correlation":"7" "correlation":0 "name":"x" "name":7 "traceEvents":[] "traceEvents":null "baseTimeNanoseconds":5 "":1
	\u0041 \u00e9 \ud83d\ude00 \ud83d \uDE00 \u12 \u \x \' // /**/ ]} }] }, ,{ ,, [] {} [[]] {"a":1} "\u0070\u0068":"X"`)

func piece(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return string([]byte{byte(r.IntN(256))})
	case 1:
		return []string{" ", "\n", "\t", "\x00", "\x0b", "\u00a0", "\u2028", "\ufeff", "\xc3", "\xed\xa0\x80", "\r\n"}[r.IntN(11)]
	}
	return pieceList[r.IntN(len(pieceList))]
}

// mutate changes the tree of a document, its text, or both.
func mutate(r *rand.Rand, doc *tree) []byte {
	doc = doc.clone()
	if r.IntN(3) > 0 {
		for range 1 + r.IntN(3) {
			mutateTree(r, doc)
		}
	}
	s := plain()
	if r.IntN(2) == 0 {
		s.gap = func() string { return []string{"", " ", "\n  "}[r.IntN(3)] }
	}
	if r.IntN(4) == 0 {
		s.text = escapeSome(r)
	}
	text := doc.write(nil, s)
	if r.IntN(3) > 0 {
		for range 1 + r.IntN(3) {
			text = mutateText(r, text)
		}
	}
	return text
}

func mutateText(r *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte(piece(r))
	}
	i := r.IntN(len(b))
	n := min(1+r.IntN(8), len(b)-i)
	put := func(with []byte, drop int) []byte {
		return append(append(append([]byte{}, b[:i]...), with...), b[i+drop:]...)
	}
	switch r.IntN(7) {
	case 0:
		return put(nil, n)
	case 1:
		return put(b[i:i+n], 0)
	case 2:
		return put([]byte{b[i] ^ 1<<r.IntN(8)}, 1)
	case 3:
		return put([]byte(piece(r)), n)
	case 4:
		if r.IntN(4) == 0 {
			return b[:i]
		}
	}
	// Between two tokens, where a piece is most likely to make sense.
	if k := bytes.IndexAny(b[i:], ",:{}[]"); k >= 0 {
		i += k + r.IntN(2)
	}
	return put([]byte(piece(r)), 0)
}

func mutateTree(r *rand.Rand, doc *tree) {
	var all []*tree
	doc.each(func(t *tree) {
		if len(t.kids) > 0 {
			all = append(all, t)
		}
	})
	if len(all) == 0 {
		return
	}
	t := all[r.IntN(len(all))]
	i := r.IntN(len(t.kids))
	from := all[r.IntN(len(all))]
	other := from.kids[r.IntN(len(from.kids))].clone()
	switch r.IntN(7) {
	case 0: // a value from elsewhere
		t.kids[i] = other
	case 1: // another scalar, which may be no JSON
		t.kids[i] = &tree{raw: piece(r)}
	case 2: // one less
		t.kids = append(t.kids[:i:i], t.kids[i+1:]...)
		if t.keys != nil {
			t.keys = append(t.keys[:i:i], t.keys[i+1:]...)
		}
	case 3: // one more, with an equal key
		t.kids = append(t.kids, other)
		if t.keys != nil {
			t.keys = append(t.keys, t.keys[i])
		}
	case 4: // one more, with a key from elsewhere
		t.kids = append(t.kids, other)
		if t.keys != nil {
			k := `"traceEvents"`
			if len(from.keys) > 0 {
				k = from.keys[r.IntN(len(from.keys))]
			}
			t.keys = append(t.keys, k)
		}
	case 5: // another key
		if t.keys != nil {
			t.keys[i] = []string{`"ts"`, `"dur"`, `"ph"`, `"cat"`, `"args"`, `"name"`, `"pid"`, `"id"`, `"traceEvents"`, `"stream"`, `"grid"`, `""`}[r.IntN(12)]
		}
	case 6: // deeper
		t.kids[i] = &tree{raw: "[", kids: []*tree{t.kids[i]}}
	}
}

// TestPython compares mutations of real traces with Python's json.
// TRACELAKE_MUTATIONS says how many; they are the same in every run.
func TestPython(t *testing.T) {
	python(t)
	names, byName := traces(t)
	n := 1500
	if s := os.Getenv("TRACELAKE_MUTATIONS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	seed := uint64(0)
	if s := os.Getenv("TRACELAKE_MUTATION_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	for i := range n {
		name := names[i%len(names)]
		r := rand.New(rand.NewPCG(21+seed, uint64(i)))
		doc := mutate(r, byName[name].someEvents(r, 1+r.IntN(12)))
		if !t.Run(fmt.Sprintf("%d_%s", i, name), func(t *testing.T) { checkPython(t, doc) }) {
			if dir := os.Getenv("TRACELAKE_FAILED"); dir != "" {
				_ = os.WriteFile(fmt.Sprintf("%s/%d.json", dir, i), doc, 0o600)
			}
		}
	}
}

// FuzzPython does the same with arbitrary documents. seed changes the tree of
// a valid one as well; 0 leaves it.
func FuzzPython(f *testing.F) {
	names, byName := traces(f)
	for i, name := range names {
		r := rand.New(rand.NewPCG(22, uint64(i)))
		f.Add(byName[name].someEvents(r, 4).text(), uint64(i%2))
	}
	f.Fuzz(func(t *testing.T, doc []byte, seed uint64) {
		if len(doc) > 1<<14 {
			t.Skip()
		}
		if seed != 0 {
			if tree := parseTree(doc); tree != nil && tree.events() != nil {
				doc = mutate(rand.New(rand.NewPCG(23, seed)), tree)
			}
		}
		checkPython(t, doc)
	})
}
