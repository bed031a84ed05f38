//go:build unix

package regular

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpen would hang where a pipe was waited for.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	pipe, file, loop := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "loop")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		pipe: ErrPipe, dir: ErrDirectory, "/dev/zero": ErrDevice, "/dev/null": ErrDevice,
		loop: syscall.ELOOP, filepath.Join(dir, "absent"): os.ErrNotExist,
	} {
		if f, err := Open(path); !errors.Is(err, want) || f != nil {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if b, err := ReadFile(file); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
}
