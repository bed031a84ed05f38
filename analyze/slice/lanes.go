package slice

import (
	"context"
	"strconv"
	"strings"
)

// Viewers show events of one thread as a stack: of two that overlap without one
// holding the other, Perfetto drops one. GPU work can overlap on a stream, so
// what does not fit gets a thread of its own beside the stream's.

const (
	// laneStep is added to the thread per lane; no stream reaches it.
	laneStep = 10_000_000
	// maxLanes bounds the work per event; the last lane takes what is left.
	maxLanes = 32
	// maxThreads bounds how many streams are looked at.
	maxThreads = 1 << 16
)

// thread is a thread of the output that GPU work runs on.
type thread struct {
	pid, tid who
}

// lanes tells which events stand on another thread than their own.
type lanes struct {
	of      map[int64]int // lane by event_index, where it is not 0
	threads map[thread]*stack
	order   []thread
}

// stack holds, per lane, the ends of the events that are open.
type stack struct{ open [][]int64 }

// fit returns the first lane on which an event nests.
func (s *stack) fit(start, end int64) int {
	for lane := 0; ; lane++ {
		if lane == len(s.open) {
			s.open = append(s.open, nil)
		}
		o := s.open[lane]
		for len(o) > 0 && o[len(o)-1] <= start {
			o = o[:len(o)-1]
		}
		if len(o) == 0 || end <= o[len(o)-1] {
			s.open[lane] = append(o, end)
			return lane
		}
		s.open[lane] = o
		if lane == maxLanes-1 {
			return lane
		}
	}
}

// findOverlaps puts the GPU work of each stream on lanes.
func (s *slicer) findOverlaps(ctx context.Context) error {
	s.lanes = lanes{of: map[int64]int{}, threads: map[thread]*stack{}}
	const cols = "event_index, start_ns, end_ns, pid, pid_text, tid, tid_text, global_pid, device, stream"
	// Other duration events, such as synchronisation, count where they stand on a
	// stream's thread.
	err := s.db.Exec(ctx, `CREATE OR REPLACE TEMP TABLE slice_lanes AS
SELECT `+cols+`, true AS work FROM slice_gpu_events
UNION ALL SELECT `+cols+`, true FROM slice_ranges WHERE on_gpu
UNION ALL SELECT `+cols+`, false FROM slice_cpu_events AS c WHERE stream IS NOT NULL AND tid IS NOT NULL
  AND EXISTS (SELECT 1 FROM slice_gpu_events AS g WHERE g.pid = c.pid AND g.tid = c.tid)
ORDER BY start_ns NULLS LAST, end_ns DESC, event_index`)
	if err != nil {
		return err
	}
	c := &cursor{db: s.db, table: "slice_lanes"}
	for {
		ok, err := c.advance(ctx)
		if err != nil || !ok {
			return err
		}
		work, _ := c.rec.value("work").(bool)
		pid, tid := s.place.at(c.rec, work)
		t := thread{pid, tid}
		open := s.lanes.threads[t]
		if open == nil {
			if len(s.lanes.threads) == maxThreads {
				continue
			}
			open = &stack{}
			s.lanes.threads[t] = open
			s.lanes.order = append(s.lanes.order, t)
		}
		start, timed := c.rec.int("start_ns")
		end, ended := c.rec.int("end_ns")
		if !timed || !ended || s.o.KeepOverlaps {
			continue
		}
		if lane := open.fit(start, end); lane > 0 {
			index, _ := c.rec.int("event_index")
			s.lanes.of[index] = lane
			s.rep.Moved++
		}
	}
}

// thread returns the thread of a lane beside another.
func (t who) lane(n int) who {
	if n == 0 {
		return t
	}
	if id, err := strconv.ParseInt(string(t), 10, 64); err == nil {
		return number(id + int64(n)*laneStep)
	}
	return who(quoted(strings.Trim(string(t), `"`) + laneName(n)))
}

func laneName(n int) string { return " (overlap " + strconv.Itoa(n) + ")" }
