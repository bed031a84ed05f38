package lake

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// tempPrefix starts the name of everything that is not finished.
const tempPrefix = ".tmp-"

type writeMode uint8

const (
	createFile  writeMode = iota // fails with fs.ErrExist where the file exists
	replaceFile                  // takes the place of an existing file
)

// writeJSON writes a small file so that a reader sees all of it or nothing,
// and makes it durable.
func writeJSON(path string, v any, mode writeMode) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	if err := writeFile(path, data, mode); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	return nil
}

// writeFile does what writeJSON promises.
func writeFile(path string, data []byte, mode writeMode) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if mode == replaceFile {
		err = os.Rename(f.Name(), path)
	} else {
		// A hard link is the one way to give a finished file a name that fails
		// where the name is taken.
		err = os.Link(f.Name(), path)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = createDirect(path, data)
		}
	}
	if err != nil {
		return err
	}
	return syncDir(dir)
}

// createDirect serves file systems without hard links. A process that dies in
// the middle leaves a cut file, which readers report.
func createDirect(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		os.Remove(path)
	}
	return err
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be flushed there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// mkdirSynced makes a directory and its parents and makes them durable.
func mkdirSynced(dir string) error {
	if st, err := os.Stat(dir); err == nil {
		if !st.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := mkdirSynced(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// syncFile makes the bytes of a file durable, also where the caller closed it, and
// says how many there are.
func syncFile(f *os.File) (size int64, err error) {
	if err = f.Sync(); errors.Is(err, os.ErrClosed) {
		if f, err = os.OpenFile(f.Name(), os.O_RDWR, 0); err != nil {
			return 0, err
		}
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		return 0, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return 0, err
	}
	return st.Size(), f.Close()
}

func randomName() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
