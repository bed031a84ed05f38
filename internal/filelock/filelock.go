// Package filelock keeps processes apart by locks on files. The kernel drops a
// lock when its process dies.
package filelock

import (
	"errors"
	"io/fs"
	"os"
)

// ErrLocked means that somebody else holds a lock.
var ErrLocked = errors.New("locked")

// Mode says how a lock is taken.
type Mode uint8

// Ways of taking a lock.
const (
	Wait   Mode = iota // alone, when all others have given it back
	Try                // alone, or not at all
	Shared             // together with others that share it
)

// Acquire takes the lock that a file stands for. With Try it fails with
// ErrLocked where somebody else holds it.
func Acquire(path string, how Mode) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := Lock(f, how); err != nil {
			f.Close()
			return nil, err
		}
		// Whoever held the lock before may have removed the file while we
		// waited: then we hold a lock that nobody else can see.
		mine, err := f.Stat()
		if err == nil {
			var now fs.FileInfo
			if now, err = os.Stat(path); err == nil && os.SameFile(mine, now) {
				return f, nil
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// Release gives a lock back and removes its file.
func Release(f *os.File) {
	if canRemoveOpen {
		os.Remove(f.Name())
		f.Close()
		return
	}
	f.Close()
	os.Remove(f.Name())
}
