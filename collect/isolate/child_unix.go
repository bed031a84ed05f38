//go:build unix && !linux

package isolate

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// MaybeGuard does nothing here: there are no guards.
func MaybeGuard() {}

// grouped is a worker that leads a process group. Memory is not measured, and
// what leaves the group is not found.
type grouped struct {
	cmd   *exec.Cmd
	grace time.Duration
	ch    chan update
	once  sync.Once
}

func startChild(spec *Spec, events, log *os.File) (child, error) {
	c := &grouped{cmd: exec.Command(spec.Argv[0], spec.Argv[1:]...), grace: spec.Grace, ch: make(chan update, 1)}
	c.cmd.Env, c.cmd.Dir = spec.Env, spec.Dir
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.ExtraFiles = log, log, []*os.File{events}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.wait()
	return c, nil
}

func (c *grouped) wait() {
	defer close(c.ch)
	_ = c.cmd.Wait()
	group := -c.cmd.Process.Pid
	e := &ending{Exit: c.cmd.ProcessState.ExitCode()}
	if ws, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = int(ws.Signal())
	}
	if err := syscall.Kill(group, syscall.SIGTERM); err == nil {
		e.Leftovers = 1 // at least
		time.Sleep(min(c.grace, 2*time.Second))
		_ = syscall.Kill(group, syscall.SIGKILL)
		time.Sleep(50 * time.Millisecond)
		if err := syscall.Kill(group, 0); !errors.Is(err, syscall.ESRCH) {
			e.Survivors = 1
		}
	}
	u := update{End: e}
	if use, ok := c.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.Peak = use.Maxrss // bytes on macOS
	}
	c.ch <- u
}

func (c *grouped) kill() {
	c.once.Do(func() {
		group := -c.cmd.Process.Pid
		_ = syscall.Kill(group, syscall.SIGTERM)
		time.AfterFunc(c.grace, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	})
}

func (c *grouped) updates() <-chan update { return c.ch }

func (c *grouped) confined() string { return "process group" }

func oomKills() int64 { return 0 }

func signalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return s.String()
}
