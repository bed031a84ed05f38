package kineto

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"runtime"
	"testing"
)

// TestGzipAhead reads a compressed trace with more processors than decompress in
// order: the outcome is the same.
func TestGzipAhead(t *testing.T) {
	b, err := os.ReadFile("../../shared/traces/kineto/HolisticTraceAnalysis/negative_queue_length_values_check/rank0.json.gz")
	if err != nil {
		t.Skip(err)
	}
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	var want *Result
	for _, procs := range []int{1, 8} {
		runtime.GOMAXPROCS(procs)
		o := Options{Workers: procs, Gate: make(chan struct{}, procs)}
		r, err := Read(context.Background(), bytes.NewReader(b), o)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = r
		}
		sum, err := Digest(bytes.NewReader(b), o)
		if err != nil || sum != want.Digest || r.Digest != want.Digest {
			t.Errorf("%d processors: digests %s and %s, %v, want %s", procs, sum, r.Digest, err, want.Digest)
		}
		if r.Events != want.Events || !reflect.DeepEqual(r.Rows, want.Rows) || r.TextBytes != want.TextBytes {
			t.Errorf("%d processors give %d events of %d bytes, one gives %d of %d", procs, r.Events, r.TextBytes, want.Events, want.TextBytes)
		}
	}
}

// TestGzipShare counts on no more goroutines than there are processors, and on
// no more than the trace may have beside others.
func TestGzipShare(t *testing.T) {
	old := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(old)
	of := func(n int) func() int { return func() int { return n } }
	for _, c := range []struct {
		o    Options
		want int
	}{
		{Options{Workers: 16}, 4},
		{Options{Workers: 3}, 3},
		{Options{Workers: 16, Share: of(2)}, 2},
		{Options{Workers: 3, Share: of(9)}, 3},
	} {
		g := c.o.gzip()
		if got := g.Share(); got != c.want || g.Workers != c.o.Workers {
			t.Errorf("%d workers: a share of %d, want %d", c.o.Workers, got, c.want)
		}
	}
}
