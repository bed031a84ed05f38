package isolate

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// ending is how a child process went, as its parent saw it.
type ending struct {
	Exit      int    `json:"exit"`
	Signal    int    `json:"signal"`
	Limit     bool   `json:"limit"` // ended for its memory
	Leftovers int    `json:"leftovers"`
	Survivors int    `json:"survivors"`
	Grouped   bool   `json:"grouped"`         // was in a control group
	Error     string `json:"error,omitempty"` // why it did not start
}

// update is a measurement, and at last the end.
type update struct {
	Peak int64   `json:"peak"`
	End  *ending `json:"end,omitempty"`
}

// child is a started worker with its tree.
type child interface {
	updates() <-chan update // closed behind the end
	kill()                  // SIGTERM to the tree, SIGKILL after the grace
	confined() string
}

// run is the state of one supervised worker.
type run struct {
	spec   *Spec
	out    Outcome
	active atomic.Int64 // nanoseconds since the start of the last sign of work
	why    string       // class under which the tree is being ended

	phase      string
	phaseStart time.Time
	done       float64
	what       string
	finished   bool // a result is in
	oomBefore  int64
}

// Run starts a worker, waits until nothing of it is left, and says how it went.
// It fails only through its outcome.
func Run(ctx context.Context, spec Spec) Outcome {
	if spec.LogHead <= 0 {
		spec.LogHead = defaultLogHead
	}
	if spec.LogTail <= 0 {
		spec.LogTail = defaultLogTail
	}
	if spec.Grace <= 0 {
		spec.Grace = defaultGrace
	}
	if spec.ExitGrace <= 0 {
		spec.ExitGrace = defaultExitGrace
	}
	r := &run{spec: &spec, out: Outcome{Started: time.Now(), Exit: -1}, oomBefore: oomKills()}
	r.phaseStart = r.out.Started
	if err := r.supervise(ctx); err != nil {
		r.out.Class, r.out.Message = StartFailed, err.Error()
	}
	r.out.Duration = time.Since(r.out.Started)
	return r.out
}

func (r *run) supervise(ctx context.Context) error {
	log, err := createLog(r.spec.LogPath, r.spec.LogHead, r.spec.LogTail)
	if err != nil {
		return err
	}
	c, events, lines, err := r.start()
	if err != nil {
		_, _ = log.close()
		return err
	}
	r.out.Confined = c.confined()

	logDone := make(chan struct{})
	go func() {
		defer close(logDone)
		_, _ = io.Copy(log, &noting{lines, r})
	}()
	stream := make(chan Event, 64)
	garbage := make(chan int64, 1)
	go func() {
		garbage <- readEvents(events, func(e Event) { stream <- e })
		close(stream)
	}()

	end := r.watch(ctx, c, stream)

	// Everything that held the pipes is gone; should something survive, its
	// output is not waited for.
	late := time.AfterFunc(2*time.Second, func() { events.Close(); lines.Close() })
	for e := range stream {
		r.event(e)
	}
	r.out.Garbage += <-garbage
	<-logDone
	late.Stop()
	events.Close()
	lines.Close()
	r.closePhase()
	r.out.LogBytes = log.written
	var logErr error
	r.out.LogCut, logErr = log.close()
	r.classify(end)
	if logErr != nil {
		r.out.Message += fmt.Sprintf(" (log: %v)", logErr)
	}
	return nil
}

// start makes the pipes and starts the child; only the child keeps their
// writing ends.
func (r *run) start() (c child, events, lines *os.File, err error) {
	events, ew, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	lines, lw, err := os.Pipe()
	if err != nil {
		events.Close()
		ew.Close()
		return nil, nil, nil, err
	}
	c, err = startChild(r.spec, ew, lw)
	ew.Close()
	lw.Close()
	if err != nil {
		events.Close()
		lines.Close()
		return nil, nil, nil, err
	}
	return c, events, lines, nil
}

// noting passes log output on and notes that there was some.
type noting struct {
	r   io.Reader
	run *run
}

func (n *noting) Read(p []byte) (int, error) {
	k, err := n.r.Read(p)
	if k > 0 {
		n.run.touch()
	}
	return k, err
}

func (r *run) touch() { r.active.Store(int64(time.Since(r.out.Started))) }

// watch waits for the end of the child and ends it early where it has to.
func (r *run) watch(ctx context.Context, c child, stream <-chan Event) ending {
	var timeout, stall, exit <-chan time.Time
	if r.spec.Timeout > 0 {
		t := time.NewTimer(r.spec.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	if r.spec.Stall > 0 {
		t := time.NewTicker(min(r.spec.Stall/8+time.Millisecond, time.Second))
		defer t.Stop()
		stall = t.C
	}
	end := func(why string) {
		if r.why == "" {
			r.why = why
			c.kill()
		}
	}
	stop := ctx.Done()
	last := ending{Exit: -1, Error: "the guard ended without a word"}
	for {
		select {
		case <-stop:
			stop = nil
			end(Interrupted)
		case <-timeout:
			if !r.finished { // else it has until the end of its grace
				end(Timeout)
			}
		case <-stall:
			if quiet := time.Since(r.out.Started) - time.Duration(r.active.Load()); quiet > r.spec.Stall && !r.finished {
				end(Stall)
			}
		case <-exit:
			if r.finished {
				end(OK)
			} else {
				end(NoResult)
			}
		case e, open := <-stream:
			wasFinished := r.finished
			if open {
				r.event(e)
			} else {
				stream = nil
			}
			switch {
			case r.finished && !wasFinished:
				exit = time.After(r.spec.ExitGrace)
			case !open && !r.finished:
				exit = time.After(closedGrace)
			}
		case u, open := <-c.updates():
			if !open {
				return last
			}
			r.out.PeakRSS = max(r.out.PeakRSS, u.Peak)
			if u.End != nil {
				last = *u.End
			}
		}
	}
}

// event takes note of what the worker says. Heartbeats prove that the
// interpreter lives, not that the job moves, and progress counts only where it
// differs from the last.
func (r *run) event(e Event) {
	switch e.Event {
	case "start":
		if r.out.Start == nil {
			r.out.Start = e.Raw
		}
	case "phase":
		r.touch()
		r.closePhase()
		r.phase, r.phaseStart = clip(e.Name, 100), time.Now()
	case "progress":
		if e.Done != r.done || e.What != r.what {
			r.touch()
			r.done, r.what = e.Done, e.What
		}
		if r.spec.Progress != nil {
			r.spec.Progress(e)
		}
	case "result":
		if res := parseResult(e.Raw); res != nil && r.out.Result == nil {
			r.touch()
			r.out.Result, r.finished = res, true
			return
		}
		r.out.Garbage++
	case "heartbeat":
	default:
		r.out.Garbage++
	}
}

func (r *run) closePhase() {
	if r.phase != "" && len(r.out.Phases) < maxPhases {
		r.out.Phases = append(r.out.Phases, Phase{r.phase, time.Since(r.phaseStart).Seconds()})
	}
	r.phase = ""
}

// classify turns all that is known into one word and one line.
func (r *run) classify(e ending) {
	o := &r.out
	o.Exit, o.Leftovers, o.Survivors = e.Exit, e.Leftovers, e.Survivors
	if e.Grouped {
		o.Confined += "+cgroup"
	}
	sig := syscall.Signal(e.Signal)
	if e.Signal != 0 {
		o.Exit, o.Signal = -1, signalName(sig)
	}
	set := func(class, format string, a ...any) { o.Class, o.Message = class, fmt.Sprintf(format, a...) }
	switch {
	case e.Error != "":
		set(StartFailed, "%s", e.Error)
	case e.Limit:
		set(OOMHost, "took more memory than the limit of %d MiB", r.spec.MaxRSS>>20)
	case r.why == Interrupted:
		set(Interrupted, "stopped on request")
	case r.why == Timeout:
		set(Timeout, "still running after %v%s", r.spec.Timeout, r.during())
	case r.why == Stall:
		set(Stall, "neither progress nor output for %v%s", r.spec.Stall, r.during())
	case r.why == NoResult:
		set(NoResult, "closed its event descriptor without a result")
	case o.Result != nil && !o.Result.OK:
		set(o.Result.Error.Class, "%s", o.Result.Error.Message)
	case o.Result != nil && (r.why == OK || o.Exit == 0 && e.Signal == 0):
		set(OK, "")
		if r.why == OK {
			o.Message = fmt.Sprintf("ended %v after its result because it did not exit", r.spec.ExitGrace)
		}
	case sig == syscall.SIGSEGV || sig == syscall.SIGBUS:
		set(Segv, "crashed with %s%s", o.Signal, r.during())
	case sig == syscall.SIGABRT:
		set(Abort, "aborted%s", r.during())
	case sig == syscall.SIGKILL && oomKills() > r.oomBefore:
		// The kernel counts for the whole machine; that the count rose while
		// this worker died makes it the likely one.
		set(OOMHost, "ended by the kernel for want of memory")
	case e.Signal != 0:
		set(Killed, "ended by %s%s", o.Signal, r.during())
	case o.Result != nil:
		set(Failed, "reported success and then exited with status %d", o.Exit)
	default:
		set(NoResult, "exited with status %d without a result%s", o.Exit, r.during())
		if line := lastLine(r.spec.LogPath); line != "" {
			o.Message += "; last output: " + line
		}
	}
}

// during names the phase in which something happened.
func (r *run) during() string {
	if n := len(r.out.Phases); n > 0 {
		return ", in phase " + r.out.Phases[n-1].Name
	}
	return ""
}
