package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
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

// TestSameOutput: two that write one file at once leave one whole file, and one that
// fails leaves what was there.
func TestSameOutput(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	err := writeTo(path, io.Discard, func(w io.Writer) error {
		if err := writeTo(path, io.Discard, func(w io.Writer) error {
			_, err := io.WriteString(w, "the other one, which is longer")
			return err
		}); err != nil {
			return err
		}
		_, err := io.WriteString(w, "this one")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := writeTo(path, io.Discard, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "this one" {
		t.Errorf("%q, %v", text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// saying runs a command and returns its exit code and what it said, which goes
// through a file without faults.
func saying(t *testing.T, args []string) (code int, said string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.Getenv("HOME"), "said"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, log := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = f, f
	code = run(args)
	os.Stdout, os.Stderr = out, log
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(text)
}

func mustSay(t *testing.T, args []string) {
	t.Helper()
	if code, said := saying(t, args); code != exitOK {
		t.Fatalf("%v: exit code %d, %s", args, code, said)
	}
}
