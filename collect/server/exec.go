package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// killAfter is how long a command may take to end when it is asked to.
const killAfter = 10 * time.Second

// Exec runs a shell command in a process group of its own, with its output in
// log. When the context ends the group is asked to end, and killed when it does
// not.
func Exec(ctx context.Context, command string, log io.Writer) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = log, log
	group(cmd)
	cmd.WaitDelay = killAfter
	err := cmd.Run()
	if ctx.Err() != nil {
		kill(cmd) // what was left of the group
		return ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("the command ended with %w", exit)
	}
	return err
}
