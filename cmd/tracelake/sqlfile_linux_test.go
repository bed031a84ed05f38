//go:build cgo && !noduckdb

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSQLFromPipe would hang where a pipe was waited for.
func TestSQLFromPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	o := sqlOptions{file: pipe}
	if _, err := o.text(nil); err == nil || codeOf(err) != exitInput || !strings.Contains(err.Error(), "standard input") {
		t.Errorf("error %v", err)
	}
}
