package kineto

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/internal/aside"
)

// TestSpill reads every trace with next to nothing in memory: the rows are the
// same.
func TestSpill(t *testing.T) {
	dir := t.TempDir()
	files := 0
	for name, b := range inputs(t) {
		want := readAll(t, from(b), Options{Workers: 1})
		text := plainText(b)
		var f *os.File
		o := Options{Workers: 2, ChunkSize: max(4096, len(text)/9), SpillAfter: 1, Spill: aside.New(func() (*os.File, error) {
			var err error
			f, err = os.Create(filepath.Join(dir, "rows"))
			return f, err
		})}
		got := readAll(t, from(b), o)
		if d := want.diff(&got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if f != nil {
			files++
			f.Close()
		}
		o.SpillAfter = 2000 // some stay in memory
		got = readAll(t, from(b), o)
		if d := want.diff(&got); d != "" {
			t.Errorf("%s: some rows in memory: %s", name, d)
		}
	}
	if files < 5 {
		t.Errorf("only %d traces have linked rows", files)
	}
	// Blocks of many batches, and columns of a block in several pieces.
	text := linkedPairs(60_000)
	want := readAll(t, from(text), Options{Workers: 1})
	for _, after := range []int{3000, 600_000} {
		o := Options{Workers: 2, ChunkSize: 20_000, SpillAfter: after, Spill: aside.New(func() (*os.File, error) { return os.Create(filepath.Join(dir, "rows")) })}
		got := readAll(t, from(text), o)
		if d := want.diff(&got); d != "" {
			t.Errorf("blocks of %d bytes: %s", after, d)
		}
	}
}

// TestSpillFails: what cannot be put into a file stays in memory; what cannot be
// read again is an error, and no value.
func TestSpillFails(t *testing.T) {
	text := linkedPairs(500)
	want := readAll(t, from(text), Options{Workers: 1})
	readOnly := func() (*os.File, error) { return os.Open(os.DevNull) }
	for what, spill := range map[string]func() (*os.File, error){
		"no file":        func() (*os.File, error) { return nil, errors.New("no room") },
		"read-only file": readOnly,
	} {
		got := readAll(t, from(text), Options{Workers: 1, ChunkSize: 5000, SpillAfter: 1, Spill: aside.New(spill)})
		if d := want.diff(&got); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "rows"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := Read(t.Context(), from(text)(), Options{ChunkSize: 5000, SpillAfter: 1, Spill: aside.New(func() (*os.File, error) { return f, nil })})
	if err != nil {
		t.Fatal(err)
	}
	if res.GPU.Values("correlation"); res.GPU.Err() != nil {
		t.Errorf("reading: %v", res.GPU.Err())
	}
	f.Close()
	res.Launches.Values("correlation")
	for _, r := range []*Retained{res.GPU, res.Launches, res.Ranges} { // they share the file
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), f.Name()) {
			t.Errorf("%s: the file cannot be read, and the error is %v", r.Table.Name, err)
		}
	}
}

// linkedPairs is a trace of launches and their kernels.
func linkedPairs(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"traceEvents": [`)
	for i := range n {
		fmt.Fprintf(&b, `{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": %d, "dur": 5, "args": {"correlation": %d}},
{"ph": "X", "cat": "kernel", "name": "k%d", "pid": 0, "tid": 7, "ts": %d, "dur": 9, "args": {"device": 0, "stream": 7, "correlation": %d}},
`, 10*i, i+1, i%17, 10*i+7, i+1)
	}
	b.WriteString(`{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]}`)
	return []byte(b.String())
}
