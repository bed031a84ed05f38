//go:build unix && !solaris && !aix

package lake

import (
	"errors"
	"os"
	"syscall"
)

const (
	haveLocks     = true
	canRemoveOpen = true
)

func flock(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		}
		return err
	}
}
