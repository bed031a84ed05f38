//go:build cgo && !noduckdb

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSliceCommand(t *testing.T) {
	dir := t.TempDir()
	a, b, lake := filepath.Join(dir, "rank0.json"), filepath.Join(dir, "rank1.json"), filepath.Join(dir, "lake")
	stepTrace(t, a, map[string][]int{"gemm": {100, 100}, "relu": {50}})
	stepTrace(t, b, map[string][]int{"gemm": {130, 110}})
	if _, stderr, code := commandLine(t, "convert", a, b, "-o", lake); code != 0 {
		t.Fatal(stderr)
	}
	count := func(path, want string) {
		t.Helper()
		stdout, stderr, code := commandLine(t, "inspect", path)
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: %d\n%s%s", path, code, stdout, stderr)
		}
	}
	for _, suffix := range []string{".json", ".json.gz", ".json.zst"} {
		out := filepath.Join(dir, "out"+suffix)
		if _, stderr, code := commandLine(t, "slice", lake, "--rank", "0", "-o", out); code != 0 || !strings.Contains(stderr, "3 GPU events, 3 launches, 1 ranges, 3 CPU events") {
			t.Errorf("%s: %d %s", suffix, code, stderr)
		}
		count(out, "GPU events  3, 3 linked, 3 in 1 iterations")
	}
	// A window of a file that holds the second kernel and the end of the first.
	out := filepath.Join(dir, "window.json")
	if _, stderr, code := commandLine(t, "slice", a, "--from", "50us", "--to", "170us", "-o", out); code != 0 || !strings.Contains(stderr, "2 GPU events, 2 launches") {
		t.Errorf("%d %s", code, stderr)
	}
	stdout, _, code := commandLine(t, "slice", a, "--iteration", "1", "-o", "-")
	if code != 0 || !strings.HasPrefix(stdout, `{"schemaVersion":1`) || !strings.Contains(stdout, "ProfilerStep#1") {
		t.Errorf("%d %.200s", code, stdout)
	}
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{lake, 2, "-o OUT"},
		{lake + " -o " + dir + "/x.txt", 2, ".json.gz"},
		{lake + " -o " + dir + "/x.json", 5, "choose with --trace"},
		{lake + " --rank 7 -o " + dir + "/x.json", 5, "no trace is selected"},
		{lake + " --rank 0 --iteration 9 -o " + dir + "/x.json", 5, "no iteration 9; there are 1"},
		{lake + " --rank 0 --iteration 1 --to 1s -o " + dir + "/x.json", 2, "either --iteration"},
		{lake + " --rank 0 --from 2s --to 1s -o " + dir + "/x.json", 5, "holds no time"},
		{a + " -o " + a, 2, "is the input"},
		{dir + "/none -o " + dir + "/x.json", 5, "none"},
	} {
		_, stderr, code := commandLine(t, append([]string{"slice"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(stderr, c.text) {
			t.Errorf("%s: %d %s", c.args, code, stderr)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "x.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if _, err := os.Stat(a); err != nil {
		t.Error(err)
	}
}
