package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipesEverywhere puts a pipe where an option or a dataset names a file: a
// command that waited for it would never end.
func TestPipesEverywhere(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	pipe := func(elem ...string) string {
		p := filepath.Join(append([]string{dir}, elem...)...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), syscall.Mkfifo(p, 0o600)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	trace, plain := faultInputs[0], pipe("pipe")
	pipe("no-format", "_tracelake", "format.json")
	whole := filepath.Join(dir, "whole")
	mustSay(t, []string{"convert", trace, "-o", whole})
	commits, err := filepath.Glob(filepath.Join(whole, "_tracelake", "commits", "*.json"))
	if err != nil || len(commits) != 1 {
		t.Fatal(commits, err)
	}
	if err := os.Remove(commits[0]); err != nil {
		t.Fatal(err)
	}
	pipe("whole", "_tracelake", "commits", filepath.Base(commits[0]))
	for _, c := range []struct {
		code int
		args []string
	}{
		{exitUsage, []string{"convert", trace, "-o", filepath.Join(dir, "new"), "--device-uuids-by-pid", plain}},
		{exitUsage, []string{"activities", trace, "--device-uuids-by-pid", plain}},
		{exitInput, []string{"collect", "--server", "http://127.0.0.1:1", "--trace-dir", dir, "--request-file", plain}},
		{exitUsage, []string{"collect", "--framework", "huggingface", "--model", "a", "--output-dir", dir, "--prompt-file", plain}},
		{exitInput, []string{"compact", filepath.Join(dir, "no-format")}},
		{exitFailed, []string{"convert", trace, "-o", filepath.Join(dir, "no-format")}},
		{exitFailed, []string{"compact", whole}},
		{exitFailed, []string{"vacuum", whole}},
		{exitInput, []string{"redact", plain, "-o", filepath.Join(dir, "out")}},
		{exitInput, []string{"inspect", plain}},
	} {
		code, said := saying(t, c.args)
		if code != c.code || !strings.Contains(said, "pipe") && !strings.Contains(said, "neither a file") && !strings.Contains(said, "want a file") {
			t.Errorf("%v: exit code %d, %s", c.args, code, said)
		}
	}
}
