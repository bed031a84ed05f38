package lake

import (
	"errors"
	"io/fs"
	"os"
)

// errLocked means that somebody else holds a lock.
var errLocked = errors.New("locked")

// acquire takes the lock that a file stands for. The kernel drops it when the
// process dies. With wait false it fails with errLocked where somebody else
// holds it.
func acquire(path string, wait bool) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := flock(f, wait); err != nil {
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
