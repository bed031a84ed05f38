// Package iterations holds the Python code that marks iterations in profiles
// with the names by which GPU work is attributed to them.
package iterations

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// FileName is the name under which the code is installed.
const FileName = "tracelake_iterations.py"

// Source is the code: a module without dependencies, which can also be pasted.
//
//go:embed tracelake_iterations.py
var Source []byte

// ErrExists means that another file has the place.
var ErrExists = errors.New("a file of another content is there")

// Install writes the module into a directory that exists and returns its path.
// It replaces a file of another content only if told so.
func Install(dir string, force bool) (string, error) {
	path := filepath.Join(dir, FileName)
	st, err := os.Stat(dir)
	if err != nil {
		return path, err
	}
	if !st.IsDir() {
		return path, fmt.Errorf("%s is not a directory", dir)
	}
	old, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(old, Source):
		return path, nil
	case err == nil && !force:
		return path, fmt.Errorf("%s: %w", path, ErrExists)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return path, err
	}
	f, err := os.CreateTemp(dir, ".tmp-")
	if err != nil {
		return path, err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(Source)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return path, err
	}
	return path, os.Rename(f.Name(), path)
}
