//go:build unix

package regular

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWalkDir enters a link that is named itself, and no other.
func TestWalkDir(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("dir/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("dir/sub/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "dir", "again": "link", "dir/loop": "../dir", "nowhere": "absent", "file": "dir/sub/file"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for root, want := range map[string]string{
		"dir": "dir dir/loop dir/sub dir/sub/file", "link": "link link/loop link/sub link/sub/file",
		"again": "again again/loop again/sub again/sub/file", "link/": "link/ link/loop link/sub link/sub/file",
		"nowhere": "nowhere", "file": "file",
	} {
		var got []string
		if err := WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() != strings.HasSuffix(strings.TrimSuffix(filepath.ToSlash(path), "/"), "sub") && path != root {
				t.Errorf("%s: directory %v", path, e.IsDir())
			}
			got = append(got, path)
			return err
		}); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v, want %s", root, got, err, want)
		}
	}
}
