package isolate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guarded is a worker behind its guard.
type guarded struct {
	cmd     *exec.Cmd
	control *os.File
	ch      chan update
	once    sync.Once
}

var (
	adopt sync.Once
	// guards are the children of this process that are ours; held while one is
	// started, so that none is taken for a stray.
	guards = struct {
		sync.Mutex
		pids map[int]bool
	}{pids: map[int]bool{}}
)

func startChild(spec *Spec, events, log *os.File) (child, error) {
	argv := append([]string(nil), spec.Argv...)
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	argv[0] = path
	// What a guard that was itself killed leaves behind falls to us.
	adopt.Do(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })

	in, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	status, out, err := os.Pipe()
	if err != nil {
		in.Close()
		control.Close()
		return nil, err
	}
	c := &guarded{control: control, ch: make(chan update, 16)}
	c.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"tracelake-guard"}, Env: append(os.Environ(), guardEnv+"=1"),
		Stdin: in, Stdout: out, Stderr: log, ExtraFiles: []*os.File{events},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	guards.Lock()
	err = c.cmd.Start()
	if err == nil {
		guards.pids[c.cmd.Process.Pid] = true
	}
	guards.Unlock()
	in.Close()
	out.Close()
	if err != nil {
		control.Close()
		status.Close()
		return nil, fmt.Errorf("cannot start a guard: %w", err)
	}
	go c.report(status)
	err = json.NewEncoder(control).Encode(guardSpec{Argv: argv, Env: spec.Env, Dir: spec.Dir, MaxRSS: spec.MaxRSS, Grace: spec.Grace})
	if err != nil {
		c.kill()
	}
	return c, nil
}

// report passes on what the guard says until it is gone, and cleans up behind
// one that went without reporting an end.
func (c *guarded) report(status *os.File) {
	defer close(c.ch)
	ended := false
	for sc := bufio.NewScanner(status); sc.Scan(); {
		var u update
		if json.Unmarshal(sc.Bytes(), &u) == nil {
			ended = ended || u.End != nil
			c.ch <- u
		}
	}
	status.Close()
	pid := c.cmd.Process.Pid
	_ = c.cmd.Wait()
	c.control.Close()
	guards.Lock()
	delete(guards.pids, pid)
	guards.Unlock()
	if !ended {
		n := killStrays()
		c.ch <- update{End: &ending{Exit: -1, Signal: int(syscall.SIGKILL), Leftovers: n}}
	}
}

// kill asks the guard once.
func (c *guarded) kill() {
	c.once.Do(func() { _, _ = c.control.Write([]byte("end\n")) })
}

func (c *guarded) updates() <-chan update { return c.ch }

func (c *guarded) confined() string { return "guard" }

// killStrays ends children of this process that no guard answers for. They are
// told from other children by their session: a worker never is in ours.
func killStrays() (killed int) {
	self := os.Getpid()
	own, ok := readStat(self)
	if !ok {
		return 0
	}
	for deadline := time.Now().Add(killWait); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		guards.Lock()
		var found []int
		for _, pid := range processes() {
			if st, ok := readStat(pid); ok && st.parent == self && st.session != own.session && !guards.pids[pid] {
				found = append(found, pid)
			}
		}
		guards.Unlock()
		if len(found) == 0 {
			return killed
		}
		for _, pid := range found {
			below := descendants(pid)
			signalAll(append(below, pid), syscall.SIGKILL)
			var ws syscall.WaitStatus
			_, _ = syscall.Wait4(pid, &ws, 0, nil)
			killed++
		}
	}
	return killed
}

func signalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return s.String()
}
