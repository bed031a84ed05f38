//go:build unix && !solaris && !aix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

const (
	Have          = true
	canRemoveOpen = true
)

func lock(f *os.File, mode Mode) error {
	how := syscall.LOCK_EX
	switch mode {
	case Try:
		how |= syscall.LOCK_NB
	case Shared:
		how = syscall.LOCK_SH
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		}
		return err
	}
}
