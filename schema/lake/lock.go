package lake

import (
	"errors"
	"io/fs"
	"os"
)

// errLocked means that somebody else holds a lock.
var errLocked = errors.New("locked")

// lockMode says how a lock is taken.
type lockMode uint8

const (
	lockWait   lockMode = iota // alone, when all others have given it back
	lockTry                    // alone, or not at all
	lockShared                 // together with others that share it
)

// acquire takes the lock that a file stands for. The kernel drops it when the
// process dies. With lockTry it fails with errLocked where somebody else
// holds it.
func acquire(path string, how lockMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := flock(f, how); err != nil {
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

// release gives a lock back and removes its file.
func release(f *os.File) {
	if canRemoveOpen {
		os.Remove(f.Name())
		f.Close()
		return
	}
	f.Close()
	os.Remove(f.Name())
}
