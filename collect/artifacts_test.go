package collect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tracelake/collect/isolate"
)

// Files that the tracer does not name are listed with the others; what the
// supervisor itself writes is not.
func TestArtifacts(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tables/ops.jsonl", "traces/a.json", "traces/deep/b.json", "note.txt", "unnamed.bin", LogFile, StatusFile} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		set(t, dir, name, name)
	}
	r := &isolate.Result{Artifacts: []isolate.Artifact{
		{Path: "tables/ops.jsonl", Kind: "table"},
		{Path: "note.txt", Kind: "report"},
		{Path: "traces", Kind: "trace"},
	}}
	list, beyond, err := artifacts(dir, r)
	if err != nil || beyond != 0 {
		t.Fatal(beyond, err)
	}
	var got []string
	for _, a := range list {
		if a.Bytes != int64(len(a.Path)) || a.SHA256 == "" {
			t.Errorf("%+v", a)
		}
		got = append(got, a.Kind+" "+a.Path)
	}
	slices.Sort(got)
	want := []string{"other unnamed.bin", "report note.txt", "table tables/ops.jsonl", "trace traces/a.json", "trace traces/deep/b.json"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.Artifacts = append(r.Artifacts, isolate.Artifact{Path: "missing.txt", Kind: "report"})
	if _, _, err := artifacts(dir, r); err == nil || !strings.Contains(err.Error(), "missing.txt, which it did not write") {
		t.Error(err)
	}
}
