package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ran runs a command and returns what it printed for people.
func ran(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// TestURLsOfFiles: where a file of this machine is wanted, the URL of an object
// is refused in one line that says what to do, and nothing is made under its name.
func TestURLsOfFiles(t *testing.T) {
	trace, err := filepath.Abs("../../testdata/demo/serving/rank0.pt.trace.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	const url = "s3://traces/x?endpoint=http://127.0.0.1:1"
	for _, args := range [][]string{
		{"activities", url},
		{"redact", url, "-o", "out.json"},
		{"sql", trace, "-f", url},
		{"sql", trace, "SELECT 1", "--temp-dir", url},
		{"analyze", "roofline", trace, "--devices", url},
		{"convert", trace, "-o", "lake", "--vllm-execution-dir", url},
		{"convert", trace, "-o", "lake", "--device-uuids-by-pid", url},
		{"collect", "--framework", "huggingface", "--model", "a/b", "--output-dir", url},
		{"collect", "plan", "--framework", "huggingface", "--model", "a/b", "--output-dir", url},
		{"worker", "--framework", "huggingface", "--model-path", url, "--tracer", "meta_ops", "--output-dir", "out"},
	} {
		_, err := ran(t, args...)
		var usage *exitError
		if !errors.As(err, &usage) || usage.code != exitUsage {
			t.Errorf("%v: %v", args, err)
			continue
		}
		if !strings.Contains(usage.text, "this machine") || !strings.Contains(usage.text, "copy") || strings.ContainsAny(usage.text, "\n") || strings.Contains(usage.text, "endpoint") {
			t.Errorf("%v: %s", args, usage.text)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := ran(t, "activities", "file://"+trace, "-o", "records.jsonl"); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat("records.jsonl"); err != nil || st.Size() == 0 {
		t.Errorf("the trace of a file URL: %v", err)
	}
	if _, err := ran(t, "slice", trace, "-o", "file://"+filepath.Join(t.TempDir(), "out.json")); err != nil {
		t.Error(err)
	}
}
