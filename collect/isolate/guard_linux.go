package isolate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guardEnv marks the incarnation of this program that is a guard.
const guardEnv = "TRACELAKE_GUARD"

// guardSpec is what the supervisor writes first to the guard's standard input.
// Every later line means: end the tree. So does the end of the input, which
// comes when the supervisor is gone, however it went.
type guardSpec struct {
	Argv, Env []string
	Dir       string
	MaxRSS    int64
	Grace     time.Duration
}

// Descriptors of a guard. Its standard error is the worker's log.
const (
	guardEventsFD = 3
	guardLogFD    = 2
)

// MaybeGuard turns this process into a guard where it was started as one, and
// does not return then. Every program that uses this package calls it first.
func MaybeGuard() {
	if os.Getenv(guardEnv) == "" {
		return
	}
	// The thread that starts the worker has to live as long as the guard:
	// the worker's death signal goes by the thread of its parent.
	runtime.LockOSThread()
	os.Exit(guardMain())
}

type guard struct {
	spec  guardSpec
	pid   int
	group *cgroup
	out   *json.Encoder
	peak  int64
	end   *ending // of the worker itself, once it is known
	limit bool

	grouped bool // the worker is in the group
}

func guardMain() int {
	// Caught rather than ignored: what is ignored stays so in the worker.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT)
	childGone := make(chan os.Signal, 1)
	signal.Notify(childGone, syscall.SIGCHLD)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	g := &guard{out: json.NewEncoder(os.Stdout)}

	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	line, err := in.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &g.spec) != nil {
		return 2
	}
	_ = os.Unsetenv(guardEnv)
	nameProcess("tracelake-guard")
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return g.fail(fmt.Errorf("cannot adopt orphans: %w", err))
	}
	if err := g.start(); err != nil {
		return g.fail(err)
	}
	order := make(chan struct{}, 1)
	go func() {
		_, _ = in.ReadByte()
		order <- struct{}{}
	}()

	tick := time.NewTicker(samplePeriod)
	defer tick.Stop()
	var hard <-chan time.Time
	soft := func() {
		if hard == nil {
			signalAll(descendants(os.Getpid()), syscall.SIGTERM)
			hard = time.After(g.spec.Grace)
		}
	}
	for g.end == nil {
		select {
		case <-childGone:
			g.reap()
		case <-order:
			soft()
		case <-asked:
			soft()
		case <-hard:
			g.killTree()
		case <-tick.C:
			g.sample()
			g.reap()
		}
	}
	g.finish()
	return 0
}

// nameProcess is what ps shows; without it, it would be that of /proc/self/exe.
func nameProcess(name string) {
	var b [16]byte
	copy(b[:15], name)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&b[0])), 0, 0, 0)
}

func (g *guard) fail(err error) int {
	_ = g.out.Encode(update{End: &ending{Exit: -1, Error: err.Error()}})
	return 1
}

// start runs the worker as the leader of its own session, dying with the guard.
func (g *guard) start() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if g.group = newCgroup(g.spec.MaxRSS); g.group != nil {
		if fd, err := g.group.open(); err == nil {
			attr.UseCgroupFD, attr.CgroupFD, g.grouped = true, fd, true
			defer func() { _ = unix.Close(fd) }()
		}
	}
	files := []uintptr{null.Fd(), guardLogFD, guardLogFD, guardEventsFD}
	start := func() (int, error) {
		pid, _, err := syscall.StartProcess(g.spec.Argv[0], g.spec.Argv, &syscall.ProcAttr{Dir: g.spec.Dir, Env: g.spec.Env, Files: files, Sys: attr})
		return pid, err
	}
	g.pid, err = start()
	if err != nil && attr.UseCgroupFD {
		attr.UseCgroupFD, g.grouped = false, false
		g.pid, err = start()
	}
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", g.spec.Argv[0], err)
	}
	// Only the worker holds the events now, so that their end is its end. The
	// log stays open for a crash of the guard itself.
	_ = unix.Close(guardEventsFD)
	return nil
}

// sample measures the tree and ends it when it is over the limit. Shared pages
// are counted apart only when the quick sum is over it.
func (g *guard) sample() {
	pids := tree(os.Getpid())
	sum := resident(pids)
	if sum > g.peak {
		g.peak = sum
		_ = g.out.Encode(update{Peak: g.peak})
	}
	if g.spec.MaxRSS <= 0 || sum <= g.spec.MaxRSS {
		return
	}
	if p := proportional(pids); p > 0 && p <= g.spec.MaxRSS {
		return
	}
	g.limit = true
	g.killTree()
}

// reap collects everything that ended: the worker and orphans.
func (g *guard) reap() {
	for {
		var ws syscall.WaitStatus
		var use syscall.Rusage
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, &use)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if pid != g.pid {
			continue
		}
		g.peak = max(g.peak, use.Maxrss<<10)
		g.end = &ending{Exit: ws.ExitStatus()}
		if ws.Signaled() {
			g.end.Signal = int(ws.Signal())
		}
	}
}

// finish ends what outlived the worker and reports.
func (g *guard) finish() {
	left := living(descendants(os.Getpid()))
	g.end.Leftovers = len(left)
	if len(left) > 0 {
		signalAll(left, syscall.SIGTERM)
		g.waitGone(min(g.spec.Grace, 2*time.Second))
	}
	for deadline := time.Now().Add(killWait); ; {
		left = living(descendants(os.Getpid()))
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
		g.killTree()
		g.waitGone(50 * time.Millisecond)
	}
	g.end.Survivors = len(left)
	if g.group != nil {
		g.limit = g.limit || g.group.exceeded()
		g.peak = max(g.peak, g.group.peak())
		g.group.remove()
	}
	g.end.Limit, g.end.Grouped = g.limit, g.grouped
	_ = g.out.Encode(update{Peak: g.peak, End: g.end})
}

func (g *guard) killTree() {
	if g.group != nil {
		g.group.killAll()
	}
	// A tree that forks while it is being killed is walked again.
	for range 20 {
		left := living(descendants(os.Getpid()))
		if len(left) == 0 {
			return
		}
		signalAll(left, syscall.SIGKILL)
		time.Sleep(2 * time.Millisecond)
	}
}

// waitGone reaps until no descendant is left or the time is up.
func (g *guard) waitGone(d time.Duration) {
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		g.reap()
		if len(descendants(os.Getpid())) == 0 {
			return
		}
	}
}

func living(pids []int) []int {
	out := pids[:0]
	for _, p := range pids {
		if alive(p) {
			out = append(out, p)
		}
	}
	return out
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, p := range pids {
		_ = syscall.Kill(p, sig)
	}
}
