package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"tracelake/collect"
)

// TestLakeImport imports jobs as they end, and those that were there before.
func TestLakeImport(t *testing.T) {
	var log bytes.Buffer
	lake := filepath.Join(t.TempDir(), "lake")
	l, err := newLakeImport(lake, "", &log)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	dir := func(tracer string) string {
		return filepath.Join("../../testdata/collect/acme/tiny-llama/eval", tracer)
	}
	for _, tracer := range []string{"torch_inductor", "torch_export"} { // the second left nothing
		if err := l.finished(ctx, dir(tracer)); err != nil {
			t.Fatal(err)
		}
	}
	err = l.rest(ctx, []collect.Report{
		{Dir: dir("torch_inductor"), Outcome: "ok"}, {Dir: dir("torch_profiler"), Outcome: collect.Done}, {Dir: dir("torch_dispatch"), Outcome: "timeout"},
	})
	if err != nil || l.inputs != 2 || l.bad != 0 || log.Len() > 0 {
		t.Errorf("%v, %d inputs, %d bad, %s", err, l.inputs, l.bad, &log)
	}
	if files, err := filepath.Glob(filepath.Join(lake, "traces", "*.parquet")); err != nil || len(files) != 2 {
		t.Errorf("%v %v", files, err)
	}
	if _, err := newLakeImport("../../testdata", "", &log); err == nil {
		t.Error("a directory with other files was taken for a dataset")
	}
}
