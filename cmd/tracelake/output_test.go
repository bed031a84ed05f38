package main

import (
	"os"
	"testing"
)

// TestOutputCannotBeWritten: an answer that is cut off because the disk is full
// is no success, whatever command printed it.
func TestOutputCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	stdout := os.Stdout
	os.Stdout = full
	defer func() { os.Stdout = stdout }()
	trace := "../../testdata/demo/serving/rank0.pt.trace.json.gz"
	for _, args := range [][]string{
		{"inspect", trace}, {"inspect", "--json", trace}, {"activities", trace}, {"version"}, {"collect", "--list-tracers"}, {"--help"},
	} {
		if code := run(args); code != exitFailed {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
