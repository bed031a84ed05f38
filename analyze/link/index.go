package link

import (
	"cmp"
	"slices"

	"tracelake/schema"
)

// State says what a look-up found.
type State uint8

// States of a Result.
const (
	None      State = iota // no span holds the moment
	One                    // spans of exactly one iteration do
	Ambiguous              // spans of several iterations do
)

// Result is the answer of Index.Lookup.
type Result struct {
	State State
	// Ref is the iteration where State is One.
	Ref schema.EntityRef
	// Span is the position of the span in the slice given to NewIndex, or -1.
	// Where spans of one iteration nest it is the one that starts last.
	Span int32
}

// Index answers which iteration a thread is in at a moment.
type Index struct {
	spans   []schema.Span
	thread  directory // spans of one thread
	process directory // process-wide spans, tid 0
	seg     segments
}

type threadKey struct{ pid, tid int64 }

// directory gives the range of segments of each thread.
type directory map[threadKey][2]int

// NewIndex builds an index in O(n log n). It keeps the slice, which must not
// change afterwards. Spans that end where they start, or before, hold nothing.
func NewIndex(spans []schema.Span) *Index {
	x := &Index{spans: spans, thread: directory{}, process: directory{}}
	ref := make([]int32, len(spans))
	number := map[schema.EntityRef]int32{}
	for i := range spans {
		n, ok := number[spans[i].Ref]
		if !ok {
			n = int32(len(number))
			number[spans[i].Ref] = n
		}
		ref[i] = n
	}
	active := make([]int32, len(number))
	var own, wide []int32
	for i := range spans {
		if spans[i].ProcessWide {
			wide = append(wide, int32(i))
		} else {
			own = append(own, int32(i))
		}
	}
	x.fill(x.thread, own, ref, active, func(s *schema.Span) threadKey { return threadKey{s.PID, s.TID} })
	x.fill(x.process, wide, ref, active, func(s *schema.Span) threadKey { return threadKey{s.PID, 0} })
	return x
}

func (x *Index) fill(d directory, members, ref, active []int32, key func(*schema.Span) threadKey) {
	slices.SortStableFunc(members, func(a, b int32) int {
		ka, kb := key(&x.spans[a]), key(&x.spans[b])
		if c := cmp.Compare(ka.pid, kb.pid); c != 0 {
			return c
		}
		return cmp.Compare(ka.tid, kb.tid)
	})
	for len(members) > 0 {
		k, n := key(&x.spans[members[0]]), 1
		for n < len(members) && key(&x.spans[members[n]]) == k {
			n++
		}
		lo := len(x.seg.tick)
		x.seg.sweep(x.spans, members[:n], ref, active)
		d[k] = [2]int{lo, len(x.seg.tick)}
		members = members[n:]
	}
}

// Lookup returns the iteration of a thread at a tick. Process-wide spans count
// only where no span of the thread holds the tick. A process or thread that is
// unknown (schema.Null) is in no iteration.
func (x *Index) Lookup(pid, tid, tick int64) Result {
	state, span := none, int32(-1)
	if pid == schema.Null {
		return Result{Span: -1}
	}
	if r, ok := x.thread[threadKey{pid, tid}]; ok && tid != schema.Null {
		state, span = x.seg.at(r[0], r[1], tick)
	}
	if state == none {
		if r, ok := x.process[threadKey{pid, 0}]; ok {
			state, span = x.seg.at(r[0], r[1], tick)
		}
	}
	switch state {
	case none:
		return Result{Span: -1}
	case many:
		return Result{State: Ambiguous, Span: -1}
	}
	return Result{State: One, Ref: x.spans[span].Ref, Span: span}
}

// IndexSpans sorts the spans of a trace by process, thread, start and
// descending end, and returns their index.
func IndexSpans(t *schema.Trace) *Index {
	slices.SortStableFunc(t.Spans, func(a, b schema.Span) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID),
			cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	return NewIndex(t.Spans)
}
