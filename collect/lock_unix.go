//go:build unix

package collect

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock is a lock on a file that ends with the process that holds it.
type lock struct{ f *os.File }

// tryLock returns nil without an error where another process holds the lock.
func tryLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, err
	}
	return &lock{f}, nil
}

// unlock leaves the file: removing it would let two processes hold it.
func (l *lock) unlock() { l.f.Close() }
