package kineto

import (
	"strings"
	"testing"
)

// TestMixedLayout checks that what was learned from one layout does not harm
// events of another one in the same trace.
func TestMixedLayout(t *testing.T) {
	text := `{"traceEvents":[` +
		`{"ph":"X","cat":"kernel","name":"a","ts":1,"dur":2,"args":{"stream":7,"grid":[1,2,3]}},` +
		`{"ph": "X", "cat": "kernel", "name": "b", "ts": 3, "dur": 4, "args": {"stream": 8, "grid": [4, 5, 6]}},` +
		`{"ph":  "X","cat":` + "\n\t" + `"kernel","name": "c","ts":5,"dur":  6,"args":{"stream":` + "\r\n" + `9,"grid":  [7,8,9]}}]}`
	for range 3 { // decoders keep what they have learned
		checkAgainst(t, []byte(text), Options{Workers: 1})
		got := readAll(t, from([]byte(text)), Options{Workers: 1})
		if len(got.diags) > 0 || len(got.rows["gpu_events"]) != 3 {
			t.Fatalf("%v %v", got.diags, got.rows)
		}
	}
}

// TestLearnedLayoutDoesNotShow: where a broken event stops to be JSON is told
// alike, whatever layout was learned before it.
func TestLearnedLayoutDoesNotShow(t *testing.T) {
	const broken = `{"ph":"X","name": "b","ts": }x,"dur":1}`
	want := ""
	for _, before := range []string{
		`{"ph":"X","name":"a","ts":1,"dur":2}`, `{"ph":"X","name": "a","ts": 1,"dur": 2}`, `{"ph":"X","name":  "a","ts":  1,"dur":  2}`,
	} {
		b := newDecoder() // which knows nothing yet
		text := []byte(`[` + before + `,` + before + `,` + broken + `]`)
		n := len(text)
		out := newBatch()
		b.decode(&job{buf: append(text, make([]byte, pad)...), n: n, final: true, out: out}, 1)
		got := ""
		for _, note := range out.notes {
			got += string(note.code) + " " + note.message + "\n"
		}
		if want == "" {
			want = got
		}
		if got != want || !strings.Contains(got, "not JSON near") {
			t.Errorf("after %s: %q, want %q", before, got, want)
		}
	}
}
