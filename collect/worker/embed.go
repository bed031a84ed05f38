// Package worker carries the Python side of the collector inside the binary.
package worker

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed all:tracelake_worker
var files embed.FS

// Module is what `python -m` runs.
const Module = "tracelake_worker"

// source lists the Python files, without what a developer's interpreter left.
func source() (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "__pycache__" {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".pyc") {
			return nil
		}
		out[path], err = files.ReadFile(path)
		return err
	})
	return out, err
}

// Digest names the contents of the Python side.
func Digest() (string, error) {
	src, err := source()
	if err != nil {
		return "", err
	}
	return digest(src), nil
}

func digest(src map[string][]byte) string {
	h := sha256.New()
	for _, name := range sorted(src) {
		fmt.Fprintf(h, "%s %d\n", name, len(src[name]))
		h.Write(src[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Unpack writes the Python side below a cache directory, in a directory named
// by its contents, and returns the directory to put on PYTHONPATH. What is
// there already is compared, and replaced where it differs.
func Unpack(cache string) (string, error) {
	src, err := source()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "worker-"+digest(src))
	if same(dir, src) {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(cache, ".worker-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	for name, text := range src {
		path := filepath.Join(tmp, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	for range 3 {
		if err = os.Rename(tmp, dir); err == nil || same(dir, src) {
			return dir, nil
		}
		// Something else lies there: it goes out of the way first.
		old, err := os.MkdirTemp(cache, ".old-")
		if err != nil {
			return "", err
		}
		_ = os.Rename(dir, filepath.Join(old, "w"))
		_ = os.RemoveAll(old)
	}
	return "", err
}

func same(dir string, src map[string][]byte) bool {
	for name, want := range src {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(got, want) {
			return false
		}
	}
	return true
}

func sorted(src map[string][]byte) []string {
	names := make([]string, 0, len(src))
	for n := range src {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
