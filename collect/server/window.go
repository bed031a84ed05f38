package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"
)

// Config says what to profile. Control is required.
type Config struct {
	Control      *Control
	TraceDir     string        // where the server writes its traces; "" for nowhere to be seen
	MaxTime      time.Duration // after which the profiler is stopped; 0 for no bound
	Flush        time.Duration // that traces may take to be complete after the stop; 0 for a minute
	MissingGrace time.Duration // after which a trace that has not appeared is not coming; 0 for 5 s
	Settle       time.Duration // between listings; 0 for 2 s
	Warn         func(string)  // gets what a person should know at once; may be nil
}

func (c *Config) fill() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.Flush, time.Minute)
	def(&c.MissingGrace, 5*time.Second)
	def(&c.Settle, 2*time.Second)
	if c.Warn == nil {
		c.Warn = func(string) {}
	}
}

// window is a window that is open.
type window struct {
	c      *Config
	rec    *Record
	before sizes // nil where it could not be read
	notes  []string
	once   sync.Once
	stop   answer
}

// Run profiles the server while body runs and returns what became of the
// window. Body also runs where the profiler did not start, so that what depends
// on it can go on; profiled tells it. The error is that of body or of the
// context; the record is complete in every case.
//
// The calls that start and stop the profiler are not given up when the context
// ends: their answers decide what is left to do. They take at most the time of
// the control each.
func Run(ctx context.Context, c Config, body func(ctx context.Context, profiled bool) error) (rec Record, err error) {
	c.fill()
	w := &window{c: &c, rec: &rec}
	rec = Record{
		SchemaVersion: 1, RecordType: "trace_window", ControlURL: c.Control.URL(), TraceDir: c.TraceDir,
		RequestedAtNS: time.Now().UnixNano(), TraceFiles: []string{},
	}
	if w.before, err = workerTraces(c.TraceDir); err != nil {
		w.before = nil
		w.note("could not read %s before the start: %v", c.TraceDir, cause(err))
	}
	if ctx.Err() != nil { // nothing was started yet
		rec.StartOutcome = Rejected
		w.note("interrupted before the start")
		rec.Note = optional(strings.Join(w.notes, "; "))
		return rec, ctx.Err()
	}
	reason := Cancelled // also where body panics
	defer func() { w.close(ctx, reason) }()
	w.start()
	if ctx.Err() != nil {
		return rec, ctx.Err()
	}
	if rec.StartOutcome == Unknown {
		w.sendStop(StartUnknown)
	}
	if rec.Started && c.MaxTime > 0 {
		bound := make(chan struct{})
		timer := time.AfterFunc(c.MaxTime, func() {
			defer close(bound)
			w.sendStop(TimeBound)
		})
		defer func() {
			if !timer.Stop() {
				<-bound
			}
		}()
	}
	err = body(ctx, rec.Started)
	if err == nil {
		err = ctx.Err()
	}
	if ctx.Err() == nil {
		reason = PhaseEnd
	}
	if err != nil {
		rec.BodyError = optional(err.Error())
	}
	return rec, err
}

func (w *window) start() {
	w.rec.StartRequestedNS = time.Now().UnixNano()
	a := w.c.Control.post("/start_profile")
	w.rec.StartReturnedNS = time.Now().UnixNano()
	w.rec.StartStatus, w.rec.StartError = optional(a.status), optional(a.err)
	w.rec.StartOutcome = outcomeOf(a)
	switch w.rec.StartOutcome {
	case Acknowledged:
		w.rec.Started, w.rec.StartedAtNS = true, &w.rec.StartReturnedNS
	case Rejected:
		w.note("the profiler did not start; see start_status and start_error")
		w.c.Warn("the profiler did not start: " + a.err + rejectedHint(a.status))
	case Unknown:
		w.c.Warn("the profiler may have started; stopping it (" + a.err + ")")
	}
}

func rejectedHint(status int) string {
	if status == 404 || status == 405 {
		return `; start vLLM with --profiler-config '{"profiler": "torch", "torch_profiler_dir": "/absolute/path"}'`
	}
	return ""
}

// sendStop stops what may be profiling, once. Who comes later waits until the
// server has answered.
func (w *window) sendStop(reason string) {
	if !w.rec.mayProfile() {
		return
	}
	w.once.Do(func() {
		// A profile with a number of iterations ends by itself and writes its
		// trace then.
		if w.before != nil {
			now, err := workerTraces(w.c.TraceDir)
			if err != nil {
				w.note("could not read %s: %v", w.c.TraceDir, cause(err))
			} else if len(now.without(w.before)) > 0 {
				reason = StoppedByServer
			}
		}
		w.stop = w.c.Control.post("/stop_profile")
		w.rec.StopReason = &reason
		w.rec.StoppedAtNS = optional(time.Now().UnixNano())
		w.rec.StopStatus, w.rec.StopError = optional(w.stop.status), optional(w.stop.err)
		if !w.stop.ok() {
			w.c.Warn("the profiler did not confirm the stop, which is sent once; it may still be running (" + w.stop.err + ")")
		}
	})
}

// close stops, looks for the traces and completes the record.
func (w *window) close(ctx context.Context, reason string) {
	if reason == Cancelled && w.rec.mayProfile() && w.rec.StopReason == nil {
		w.c.Warn(fmt.Sprintf("stopping the profiler; the server writes its traces before it answers, for which %v are allowed", w.c.Control.timeout))
	}
	w.sendStop(reason)
	if w.rec.mayProfile() && w.before != nil && w.c.TraceDir != "" {
		// After an interruption the traces are still worth waiting for.
		names, settled, err := newFiles(context.WithoutCancel(ctx), w.c, w.before)
		if err != nil {
			w.note("could not read %s: %v", w.c.TraceDir, cause(err))
		}
		w.rec.TraceFilesSettled = settled
		w.rec.TraceFiles = append(w.rec.TraceFiles, names...)
		if len(names) > 0 && !settled {
			w.note("the traces still grew after %v", w.c.Flush)
		}
	}
	w.resultNotes()
	w.rec.Note = optional(strings.Join(w.notes, "; "))
}

func (w *window) resultNotes() {
	switch {
	case w.rec.StartOutcome == Unknown && w.stop.ok() && *w.rec.StopReason == StartUnknown:
		w.note("the answer to the start does not say whether the profiler started; it was stopped, and the rest ran unprofiled")
	case w.rec.StartOutcome == Unknown:
		w.note("the answer to the start does not say whether the profiler started")
	case w.rec.Started && w.c.TraceDir == "":
		w.note("the trace stays on the server; no trace directory was given to read it from")
	case w.rec.Started && len(w.rec.TraceFiles) == 0 && len(w.notes) == 0:
		w.note("no new worker trace appeared in %s", w.c.TraceDir)
	}
	if w.rec.mayProfile() && !w.stop.ok() {
		w.note("the stop was sent once and not confirmed (see stop_status and stop_error); the profiler may still be running")
	}
}

func (w *window) note(format string, a ...any) { w.notes = append(w.notes, fmt.Sprintf(format, a...)) }

// cause leaves out the path of an error, which the message names already.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
