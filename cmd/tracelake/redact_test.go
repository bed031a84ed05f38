package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRedactCommand(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a.json")
	text := `{"host_name": "zulu", "traceEvents": [{"ph":"X","cat":"kernel","name":"zulu_kernel","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{"stream":7}}]}`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{".json", ".json.gz", ".json.zst"} {
		out := filepath.Join(dir, "out"+suffix)
		stdout, stderr, code := commandLine(t, "redact", source, "-o", out)
		if code != 0 || stdout != "" || !strings.Contains(stderr, "host") || strings.Contains(stderr, "zulu") {
			t.Errorf("%d %s %s", code, stdout, stderr)
		}
		if stdout, _, code := commandLine(t, "inspect", out); code != 0 || !strings.Contains(stdout, "GPU events  1") || strings.Contains(stdout, "zulu") {
			t.Errorf("%d %s", code, stdout)
		}
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, code := commandLine(t, "redact", source, "--dry-run")
	if code != 0 || !strings.Contains(stdout, `"zulu_kernel"`) || !strings.Contains(stdout, `"zulu"`) {
		t.Errorf("%d %s", code, stdout)
	}
	cut := filepath.Join(dir, "cut.json")
	if err := os.WriteFile(cut, []byte(text[:90]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{source, 2, "either -o OUT or --dry-run"},
		{source + " -o " + dir + "/x.txt", 2, ".json.gz"},
		{source + " -o -", 2, "name a file"},
		{source + " -o " + source, 2, "is the input"},
		{source + " --names some --dry-run", 2, "want all, private or none"},
		{source + " --keep ( --dry-run", 2, "--keep"},
		{cut + " -o " + dir + "/x.json", 5, "ends early at byte"},
		{cut + " -o " + dir + "/x.json.gz", 5, "tracelake slice"},
		{dir + "/none.json -o " + dir + "/x.json", 5, "none.json"},
	} {
		_, stderr, code := commandLine(t, append([]string{"redact"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(stderr, c.text) || strings.Contains(stderr, "zulu") {
			t.Errorf("%s: %d %s", c.args, code, stderr)
		}
	}
	after, err := os.ReadDir(dir)
	if err != nil || len(after) != len(before)+1 {
		t.Errorf("left behind: %v %v", after, err)
	}
}

func TestRedactReport(t *testing.T) {
	const report = "../../testdata/demo/training-nsight/report.sqlite"
	dir := t.TempDir()
	out := filepath.Join(dir, "public.sqlite")
	if _, stderr, code := commandLine(t, "redact", report, "-o", out); code != 0 || !strings.Contains(stderr, "host") {
		t.Fatalf("%d %s", code, stderr)
	}
	if stdout, _, code := commandLine(t, "inspect", out); code != 0 || !strings.Contains(stdout, "240, 240 linked") || !strings.Contains(stdout, "redacted_host_") {
		t.Errorf("%d %s", code, stdout)
	}
	if stdout, _, code := commandLine(t, "redact", report, "--dry-run"); code != 0 || !strings.Contains(stdout, `"generated"`) {
		t.Errorf("%d %s", code, stdout)
	}
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.sqlite")
	if err := os.WriteFile(bad, b[:len(b)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := commandLine(t, "redact", bad, "-o", filepath.Join(dir, "x.sqlite")); code != 5 || !strings.Contains(stderr, "bad.sqlite") {
		t.Errorf("%d %s", code, stderr)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "x*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestRedactForms copies an export of every form, and names what is none.
func TestRedactForms(t *testing.T) {
	dir := t.TempDir()
	lines := filepath.Join(dir, "report.jsonl")
	text := `{"id": 1, "value": "zulu_kernel", "table": "StringIds"}
{"start": 10, "end": 20, "deviceId": 0, "streamId": 7, "globalPid": 1291845632, "demangledName": 1, "table": "CUPTI_ACTIVITY_KIND_KERNEL"}
`
	if err := os.WriteFile(lines, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, _, code := commandLine(t, "redact", lines, "--dry-run"); code != 0 || !strings.Contains(stdout, `"zulu_kernel"`) {
		t.Errorf("%d %s", code, stdout)
	}
	out := filepath.Join(dir, "out.jsonl")
	if _, stderr, code := commandLine(t, "redact", lines, "-o", out); code != 0 || !strings.Contains(stderr, "identifier") {
		t.Errorf("%d %s", code, stderr)
	}
	if stdout, _, code := commandLine(t, "inspect", out); code != 0 || !strings.Contains(stdout, "GPU events  1") {
		t.Errorf("%d %s", code, stdout)
	}
	if b, err := os.ReadFile(out); err != nil || strings.Contains(string(b), "zulu") {
		t.Errorf("%s %v", b, err)
	}
	for name, text := range map[string]string{"report.nsys-rep": "NSYS", "notes.txt": "zulu", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for input, want := range map[string]string{
		"report.nsys-rep": "nsys export --type sqlite", "notes.txt": "no trace: neither", "empty": "ends early", "": "a directory that is no Parquet or Arrow export", "none": "no such file",
	} {
		_, stderr, code := commandLine(t, "redact", filepath.Join(dir, input), "-o", filepath.Join(dir, "x.json"))
		if code != 5 || !strings.Contains(stderr, want) || strings.Contains(stderr, "zulu") {
			t.Errorf("%s: %d %s", input, code, stderr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*x.json*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
