package kineto

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	"tracelake/schema"
)

// repeated is a trace whose events are those of another one, n times. Their
// correlation IDs occur again and again, which reading does not mind.
func repeated(t *testing.T, text []byte, n int) []byte {
	t.Helper()
	var trace struct {
		Events json.RawMessage `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatal(err)
	}
	events := trace.Events[1 : len(trace.Events)-1]
	out := []byte(`{"traceEvents":[`)
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, events...)
	}
	return append(out, "]}"...)
}

// allocated reads a trace with one worker and returns its events and what was
// allocated.
func allocated(t *testing.T, text []byte) (events, objects, size float64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := Read(t.Context(), bytes.NewReader(text), Options{
		Workers: 1, ChunkSize: 1 << 20, SizeHint: int64(len(text)),
		RowGroups: func(_ *schema.Table, _ int, _ []schema.Vector, done func()) error {
			done()
			return nil
		},
	})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	return float64(res.Events), float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc)
}

// Bounds for one more event. What is measured is 0.015 allocations and 34 bytes,
// which GPU events, launches and ranges take until the end of the file.
var maxObjects, maxBytes = 0.03, 60.0

// TestAllocations holds what one more event costs, once a reader has learned
// the trace: next to no allocation, and the bytes that are kept until the end.
func TestAllocations(t *testing.T) {
	text := plainText(inputs(t)["own/vllm_eager_shapes.pt.trace.json.gz"])
	few, many := repeated(t, text, 10), repeated(t, text, 40)
	allocated(t, many) // fills the lists of used memory
	e1, o1, s1 := allocated(t, few)
	e2, o2, s2 := allocated(t, many)
	objects, size := (o2-o1)/(e2-e1), (s2-s1)/(e2-e1)
	t.Logf("%.0f and %.0f events: %.4f allocations and %.1f bytes for one more", e1, e2, objects, size)
	if e2-e1 < 50_000 || objects > maxObjects || size > maxBytes {
		t.Errorf("%.0f more events, %.4f allocations and %.1f bytes each; want at least 50000, at most %g and %g", e2-e1, objects, size, maxObjects, maxBytes)
	}
}
