package worker

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestUnpack(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "a", "b")
	dir, err := Unpack(cache)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, Module, "README.md")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// A file that somebody broke is mended.
	if err := os.WriteFile(file, []byte("raise SystemExit"), 0o644); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if again, err := Unpack(cache); err != nil || again != dir {
				t.Errorf("%s, %v", again, err)
			}
		})
	}
	wg.Wait()
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("%q, %v", after, err)
	}
	left, err := os.ReadDir(cache)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
