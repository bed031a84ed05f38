package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// killAfter is how long a command may take to end when it is asked to.
const killAfter = 10 * time.Second

// Exec runs a shell command in a process group of its own, with its output in
// log. When the context ends the group is asked to end, and killed when it does
// not; what the command leaves in the background is killed at once.
func Exec(ctx context.Context, command string, log io.Writer) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	r, w, err := os.Pipe() // of our own: Wait would wait for all who have the other end
	if err != nil {
		return err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	group(cmd)
	cmd.WaitDelay = killAfter
	err = cmd.Start()
	w.Close()
	if err != nil {
		return err
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(log, r)
	}()
	err = cmd.Wait()
	kill(cmd) // what is left of the group
	select {
	case <-copied:
	case <-time.After(killAfter): // a process that left the group
		r.Close()
		<-copied
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("the command ended with %w", exit)
	}
	return err
}
