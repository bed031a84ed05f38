package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func begin(t *testing.T, path, text string) *Output {
	t.Helper()
	o, err := NewOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Path(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOutputs: outputs of one name do not meet, whoever is last wins, and what was
// abandoned or killed leaves nothing.
func TestOutputs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	dead := filepath.Join(dir, "."+ownPrefix()+"0123")
	if err := errors.Join(os.Mkdir(dead, 0o700), os.WriteFile(dead+lockSuffix, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	a, b, c := begin(t, path, "a"), begin(t, path, "b"), begin(t, path, "c")
	for _, name := range names(t, dir) {
		if name[0] != '.' || name == filepath.Base(dead) {
			t.Errorf("there is %s", name)
		}
	}
	if err := errors.Join(b.Finish(), a.Finish(), c.Abandon(), a.Abandon()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "a" {
		t.Errorf("%q, %v", text, err)
	}
	// A directory is in the way.
	d := begin(t, filepath.Join(dir, "taken"), "d")
	if err := os.MkdirAll(filepath.Join(dir, "taken", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Finish(); err == nil {
		t.Error("a file took the place of a directory")
	}
	if left := names(t, dir); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
	if _, err := NewOutput(filepath.Join(dir, "none", "x")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
