// Package filelock keeps processes apart by locks on files. The kernel drops a
// lock when its process dies. Where the system has no file locks (Have), everybody
// gets every lock at once.
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
		f, err := Hold(path, how)
		if err != nil {
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

// Hold takes the lock of a file that stays where it is, as locks that several
// hold at once do; closing the file gives it back. With Try it fails with
// ErrLocked where somebody else holds it.
func Hold(path string, how Mode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lock(f, how); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
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
