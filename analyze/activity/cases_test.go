package activity_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/kineto/compat"
	nsight "tracelake/nsight/compat"
	"tracelake/schema"
)

const casesDir = "../../testdata/stormlog"

// otherWords are cases whose refusal is worded differently, because the
// reference's text comes from its runtime.
var otherWords = map[string]string{
	"deep_nesting_100k":     "nest deeper",
	"gzip_corrupt_deflate":  "truncated or corrupt trace file",
	"gzip_of_bad_utf8":      "not UTF-8",
	"gzip_bad_crc":          "CRC check failed",
	"gzip_trailing_garbage": "Not a gzipped file",
	"invalid_utf8":          "not UTF-8",
	"utf16":                 "not UTF-8",
	// The reference does not catch these and so names no event.
	"args_list":                "'list' object has no attribute 'get'",
	"args_string":              "'str' object has no attribute 'get'",
	"gpu_device_infinity":      "cannot convert float infinity to integer",
	"gpu_ts_huge_int_literal":  "int too large to convert to float",
	"gpu_ts_overflow_us_to_ns": "cannot convert float infinity to integer",
}

// TestCases compares every kept case with the reference's answer, row by row.
func TestCases(t *testing.T) {
	answers, err := filepath.Glob(filepath.Join(casesDir, "*.jsonl"))
	if err != nil || len(answers) < 300 {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	for _, answer := range answers {
		stem, detail, _ := strings.Cut(strings.TrimSuffix(filepath.Base(answer), ".jsonl"), ".")
		t.Run(stem+"/"+detail, func(t *testing.T) {
			path := caseInput(t, stem)
			want := readAnswer(t, answer)
			trace, err := load(path)
			var got []row
			if err == nil {
				got, err = rows(t, trace, path, detail)
			}
			if want[0]["rec"] == "error" {
				checkRefusal(t, stem, err, want[0])
				return
			}
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			trimPaths(got)
			trimPaths(want)
			compareRows(t, got, want)
		})
	}
}

// caseInput returns the file that a case is about.
func caseInput(t *testing.T, stem string) string {
	t.Helper()
	for _, suffix := range []string{".json", ".json.gz", ".sqlite"} {
		path := filepath.Join(casesDir, stem+suffix)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("no input for %s", stem)
	return ""
}

// load reads a trace as the reference does, which goes by the suffix.
func load(path string) (*schema.Trace, error) {
	if filepath.Ext(path) == ".sqlite" {
		return nsight.Load(path)
	}
	return compat.Load(path)
}

func readAnswer(t *testing.T, path string) (out []row) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		out = append(out, decodeRow(t, line))
	}
	if len(out) == 0 {
		t.Fatalf("%s is empty", path)
	}
	return out
}

func checkRefusal(t *testing.T, stem string, err error, want row) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted; the reference says %v", want["message"])
	}
	msg, words := err.Error(), otherWords[stem]
	if words == "" && msg != want["message"] || !strings.Contains(msg, words) {
		t.Errorf("refused with %q; the reference says %q", msg, want["message"])
	}
}

// trimPaths keeps the file name alone, since the answers come from elsewhere.
// Compressed copies of plain inputs keep their name.
func trimPaths(rows []row) {
	for _, r := range rows {
		if p, ok := r["path"].(string); ok {
			r["path"] = filepath.Base(p)
		}
	}
}
