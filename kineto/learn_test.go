package kineto

import (
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
