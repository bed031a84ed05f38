//go:build !unix

package isolate

import (
	"errors"
	"os"
	"syscall"
)

// MaybeGuard does nothing here: there are no guards.
func MaybeGuard() {}

func startChild(*Spec, *os.File, *os.File) (child, error) {
	return nil, errors.New("tracers run on Linux and macOS only")
}

func oomKills() int64 { return 0 }

func signalName(s syscall.Signal) string { return s.String() }
