package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// dieWith asks the kernel to stop this process as SIGTERM does when its parent
// ends, so that nobody converts for an engine that has given the task to
// another.
func dieWith(parent int) error {
	if parent == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return err
	}
	if now := os.Getppid(); now != parent { // it ended before we asked
		return errUsage("--die-with %d: the parent is process %d; it has ended, or another program stands between", parent, now)
	}
	return nil
}
