package slice

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tracelake/analyze/query"
)

//go:embed select.sql
var selectSQL string

// Options say which part of the selected trace is written. The trace itself is
// selected by the variables run, rank and trace of the database.
type Options struct {
	From, To  *time.Duration // since the start of the trace
	Iteration string         // the time of this iteration instead
	Device    *int64         // GPU work of this device only
	// KeepOverlaps leaves GPU events that overlap on one stream on it. Viewers
	// then hide one of them.
	KeepOverlaps bool
}

// Report says what a slice holds.
type Report struct {
	TraceID, Run string
	Rank         any              // int64 or nil
	Offset       time.Duration    // of the window since the start of the trace
	Length       time.Duration    // of the window; of the trace where there is no window
	Rows         map[string]int64 // by table
	Moved        int64            // events on threads of their own because they overlap
}

// SelectionError means that the options select no trace, several, or nothing
// in it.
type SelectionError struct{ Text string }

func (e *SelectionError) Error() string { return e.Text }

// slicer writes one slice.
type slicer struct {
	db    *query.DB
	o     Options
	trace record // row of traces
	from  *int64 // ns on the clock of the trace
	to    *int64
	place placer
	lanes lanes
	rep   Report
}

// Write writes the slice to w.
func Write(ctx context.Context, db *query.DB, w io.Writer, o Options) (*Report, error) {
	s := &slicer{db: db, o: o}
	for _, step := range []func(context.Context) error{s.findTrace, s.findWindow, s.selectRows, s.findPlaces, s.findOverlaps} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.write(ctx, w); err != nil {
		return nil, err
	}
	return &s.rep, nil
}

// findTrace finds the one trace that the variables select.
func (s *slicer) findTrace(ctx context.Context) error {
	found, err := s.all(ctx, "FROM selected_traces ORDER BY rank, path LIMIT 11")
	if err != nil {
		return err
	}
	switch {
	case len(found) == 0:
		return &SelectionError{"no trace is selected"}
	case len(found) > 1:
		var b strings.Builder
		b.WriteString("a slice holds one trace; choose with --trace, --rank or --run among")
		for i, t := range found {
			if i == 10 {
				b.WriteString("\n  …")
				break
			}
			fmt.Fprintf(&b, "\n  --trace %s (run %s, rank %s) %s", t.text("trace_id"), t.text("run"), rankText(t.value("rank")), t.text("path"))
		}
		return &SelectionError{b.String()}
	}
	s.trace = found[0]
	s.rep.TraceID, s.rep.Run, s.rep.Rank = s.trace.text("trace_id"), s.trace.text("run"), s.trace.value("rank")
	if n, ok := s.rep.Rank.(int64); ok && n < 0 {
		s.rep.Rank = nil
	}
	return s.db.Set(ctx, "slice_trace", s.rep.TraceID)
}

func rankText(v any) string {
	if n, ok := v.(int64); ok && n >= 0 {
		return fmt.Sprint(n)
	}
	return "unknown"
}

// findWindow turns the options into times of the trace.
func (s *slicer) findWindow(ctx context.Context) error {
	start, timed := s.trace.int("start_ns")
	end, _ := s.trace.int("end_ns")
	if !timed {
		if s.o.From != nil || s.o.To != nil || s.o.Iteration != "" {
			return &SelectionError{"the trace holds no event with a time"}
		}
		return nil
	}
	s.rep.Length = time.Duration(end - start)
	at := func(d *time.Duration) *int64 {
		if d == nil {
			return nil
		}
		t := start + d.Nanoseconds()
		return &t
	}
	s.from, s.to = at(s.o.From), at(s.o.To)
	if s.o.Iteration != "" {
		if err := s.findIteration(ctx); err != nil {
			return err
		}
	}
	if s.from != nil {
		s.rep.Offset = time.Duration(*s.from - start)
		s.rep.Length -= s.rep.Offset
		if err := s.db.Set(ctx, "slice_from", *s.from); err != nil {
			return err
		}
	}
	if s.to != nil {
		s.rep.Length = time.Duration(*s.to-start) - s.rep.Offset
		if err := s.db.Set(ctx, "slice_to", *s.to); err != nil {
			return err
		}
	}
	if s.rep.Length <= 0 && (s.from != nil || s.to != nil) {
		return &SelectionError{fmt.Sprintf("the window holds no time: the trace is %v long", time.Duration(end-start))}
	}
	if s.o.Device != nil {
		return s.db.Set(ctx, "slice_device", *s.o.Device)
	}
	return nil
}

// findIteration sets the window to an iteration: from the start of its marks to
// their end or that of the last GPU work launched in it.
func (s *slicer) findIteration(ctx context.Context) error {
	if err := s.db.Set(ctx, "slice_iteration", s.o.Iteration); err != nil {
		return err
	}
	found, err := s.all(ctx, `SELECT min(start_ns) AS a, max(b) AS b FROM (
  SELECT start_ns, end_ns AS b FROM ranges WHERE trace_id = getvariable('slice_trace') AND iteration_id = getvariable('slice_iteration')
  UNION ALL SELECT NULL, end_ns FROM gpu_events WHERE trace_id = getvariable('slice_trace') AND iteration_id = getvariable('slice_iteration'))`)
	if err != nil {
		return err
	}
	a, ok := found[0].int("a")
	b, ended := found[0].int("b")
	if ok && ended {
		s.from, s.to = &a, &b
		return nil
	}
	some, err := s.all(ctx, `SELECT DISTINCT iteration_id AS id FROM ranges
WHERE trace_id = getvariable('slice_trace') AND iteration_id IS NOT NULL ORDER BY length(id), id LIMIT 6`)
	if err != nil {
		return err
	}
	if len(some) == 0 {
		return &SelectionError{"nothing marks iterations in the trace; choose a window with --from and --to"}
	}
	var names []string
	for _, r := range some {
		names = append(names, r.text("id"))
	}
	return &SelectionError{fmt.Sprintf("no iteration %s; there are %s …", s.o.Iteration, strings.Join(names, ", "))}
}

// tables are the tables that events come from; each has a selection of its own.
var tables = []string{"gpu_events", "launches", "ranges", "cpu_events", "instants", "counters", "flows", "metadata"}

func (s *slicer) selectRows(ctx context.Context) error {
	if err := s.db.Exec(ctx, selectSQL); err != nil {
		return err
	}
	s.rep.Rows = map[string]int64{}
	for _, t := range tables {
		n, err := s.all(ctx, "SELECT count(*) AS n FROM slice_"+t)
		if err != nil {
			return err
		}
		s.rep.Rows[t], _ = n[0].int("n")
	}
	return nil
}

// all returns the rows of a small answer.
func (s *slicer) all(ctx context.Context, sql string) (out []record, err error) {
	rows, err := s.db.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names := positions(rows.Columns())
	for {
		v := make([]any, len(names))
		if err := rows.Next(v); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, record{names, v})
	}
}
