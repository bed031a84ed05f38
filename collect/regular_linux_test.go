package collect

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"tracelake/internal/regular"
)

// TestNoRegularLists would hang where a pipe was waited for.
func TestNoRegularLists(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadModelList(pipe); !errors.Is(err, regular.ErrPipe) {
		t.Errorf("list of models: %v", err)
	}
	if _, err := ReadConfig(pipe); !errors.Is(err, regular.ErrPipe) {
		t.Errorf("configuration: %v", err)
	}
}
