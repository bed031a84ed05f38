package nsight

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/schema"
)

// TestCutExports cuts exports of the other formats: what is read is whole, or
// is said not to be.
func TestCutExports(t *testing.T) {
	dir := synthetic(t)
	want := digestOf(t, filepath.Join(dir, "e2026.sqlite"), Options{})
	whole := func(path string) (bool, error) {
		res, err := Read(context.Background(), path, Options{Workers: 1})
		var r *schema.RejectedError
		if err != nil && !errors.As(err, &r) {
			t.Fatalf("%s: %v is no refusal", path, err)
		}
		return err == nil && res.Diags.Count(schema.TextCut) == 0, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "e2026.arrows"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.arrows")
	ends := 0 // cuts behind the end mark of a table look like a report without the others
	for n := 16; n < len(text); n += len(text)/400 + 1 {
		if err := os.WriteFile(path, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, _ := whole(path); ok {
			ends++
		}
	}
	if ends > 1 {
		t.Errorf("%d cut files look whole", ends)
	}
	for _, name := range []string{"e2026_pqtdir", "e2026_arwdir", "e2026_stream_arwdir"} {
		for _, table := range []string{tableKernel, tableRuntime, tableNVTX, "StringIds", "TARGET_INFO_GPU"} {
			to := filepath.Join(t.TempDir(), name)
			if err := os.CopyFS(to, os.DirFS(filepath.Join(dir, name))); err != nil {
				t.Fatal(err)
			}
			err := filepath.WalkDir(to, func(p string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					err = os.Chmod(p, 0o600)
				}
				if err == nil && strings.HasPrefix(e.Name(), table+".") {
					info, ierr := e.Info()
					if ierr != nil {
						return ierr
					}
					err = os.Truncate(p, info.Size()*2/3)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := whole(to); ok || err == nil || !strings.Contains(err.Error(), table) {
				t.Errorf("%s without the end of %s: %v", name, table, err)
			}
		}
	}
	lines, err := os.ReadFile(filepath.Join(dir, "e2026.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "cut.jsonl")
	if err := os.WriteFile(path, lines[:len(lines)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, err := whole(path); ok || err == nil || !strings.Contains(err.Error(), "line ") {
		t.Errorf("cut line: %v", err)
	}
	if got := digestOf(t, filepath.Join(dir, "e2026_pqtdir"), Options{Workers: 4}); got != want {
		t.Errorf("the whole directory: %s, want %s", got, want)
	}
}
