package kineto

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
)

// TestGzipAhead reads compressed traces with more processors than decompress in
// order: the outcome is the same.
func TestGzipAhead(t *testing.T) {
	paths, _ := filepath.Glob("../../shared/traces/kineto/HolisticTraceAnalysis/*/*.json.gz")
	old := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(old)
	n := 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) < 1<<20 {
			continue
		}
		n++
		var want *Result
		for _, procs := range []int{1, 8} {
			runtime.GOMAXPROCS(procs)
			r, err := Read(context.Background(), bytes.NewReader(b), Options{Workers: procs})
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			sum, err := Digest(bytes.NewReader(b), Options{Workers: procs})
			if err != nil || sum != r.Digest {
				t.Errorf("%s: digest %s, %v, want %s", path, sum, err, r.Digest)
			}
			if want == nil {
				want = r
			}
			if r.Digest != want.Digest || r.Events != want.Events || !reflect.DeepEqual(r.Rows, want.Rows) || r.TextBytes != want.TextBytes {
				t.Errorf("%s: %d processors give %d events of %d bytes, one gives %d of %d", path, procs, r.Events, r.TextBytes, want.Events, want.TextBytes)
			}
		}
	}
	if n == 0 {
		t.Skip("no large traces beside the repository")
	}
}
