//go:build unix

package readonly

import (
	"os"

	"golang.org/x/sys/unix"
)

// writer reports whether another process holds one of the locks that SQLite
// takes for writing: pending, reserved or exclusive.
func writer(f *os.File) bool {
	const pending = 0x40000000
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: pending, Len: 2}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l); err != nil {
		return false
	}
	return l.Type != unix.F_UNLCK
}
