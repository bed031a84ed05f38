package scratch

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDeadOnesGo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	alive, err := New()
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(os.TempDir(), ownPrefix()+"0123")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dead + lockSuffix, filepath.Join(dead, "file"), filepath.Join(alive.Path(), "file")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[0].Name() != filepath.Base(alive.Path()) {
		t.Errorf("after a sweep there are %v; want the directory that is in use and its lock", left)
	}
	if err := alive.Remove(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
