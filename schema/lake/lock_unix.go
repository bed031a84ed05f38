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

func flock(f *os.File, mode lockMode) error {
	how := syscall.LOCK_EX
	switch mode {
	case lockTry:
		how |= syscall.LOCK_NB
	case lockShared:
		how = syscall.LOCK_SH
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
