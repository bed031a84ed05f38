//go:build cgo && !noduckdb

package convert

import (
	"os"
	"path/filepath"
	"testing"

	"tracelake/internal/digest"
)

// TestContentDigest checks what stands for the content of inputs without rows:
// that of a twin is the one of its content, that of a rejected input the bytes as
// stored, also where they came through standard input.
func TestContentDigest(t *testing.T) {
	dir := t.TempDir()
	trace := `{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}`
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}
	imported := func(path string) {
		t.Helper()
		mustRun(t, o, path)
	}
	for _, f := range []struct{ name, text string }{{"one.json", trace}, {"twin.json", trace}, {"broken.json", "no trace"}} {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
		imported(path)
	}
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	for _, text := range []string{"no trace", "none either", "no trace"} {
		path := filepath.Join(dir, "stdin")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdin = f
		imported(Stdin)
		f.Close()
	}
	sum := func(text string) string {
		h := digest.New()
		h.Write([]byte(text))
		return digest.Text(h)
	}
	expect(t, o.Output, "SELECT parse_filename(path), content_digest FROM traces WHERE path <> '-' ORDER BY path",
		"broken.json "+sum("no trace")+"\none.json "+sum(trace)+"\ntwin.json "+sum(trace))
	expect(t, o.Output, "SELECT count(DISTINCT trace_id), count(*), count(*) FILTER (content_digest = '"+sum("no trace")+"') FROM traces WHERE path = '-'", "2 2 1")
}
