package link

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"tracelake/schema"
)

func ref(id string) schema.EntityRef { return schema.EntityRef{Producer: "p", ID: id} }

func TestLookup(t *testing.T) {
	span := func(tid, start, end int64, id string) schema.Span {
		return schema.Span{PID: 1, TID: tid, Start: start, End: end, Ref: ref(id), EventIndex: schema.Null}
	}
	wide := func(start, end int64, id string) schema.Span {
		s := span(99, start, end, id)
		s.ProcessWide = true
		return s
	}
	x := NewIndex([]schema.Span{
		0: span(1, 0, 10, "a"), 1: span(1, 10, 20, "b"), // touching
		2: span(2, 0, 100, "a"), 3: span(2, 10, 20, "a"), 4: span(2, 10, 15, "a"), // nested, same
		5: span(3, 0, 100, "a"), 6: span(3, 10, 20, "b"), // nested, different
		7: span(4, 5, 5, "a"), 8: span(4, 9, 3, "a"), // hold nothing
		9: wide(50, 60, "w"), 10: wide(60, 70, "v"), 11: wide(65, 70, "u"),
	})
	for _, c := range []struct {
		tid, tick int64
		state     State
		id        string
		span      int32
	}{
		{1, -1, None, "", -1},
		{1, 0, One, "a", 0},
		{1, 9, One, "a", 0},
		{1, 10, One, "b", 1},
		{1, 19, One, "b", 1},
		{1, 20, None, "", -1},
		{2, 5, One, "a", 2},
		{2, 10, One, "a", 4},
		{2, 14, One, "a", 4},
		{2, 15, One, "a", 3},
		{2, 20, One, "a", 2},
		{2, 100, None, "", -1},
		{3, 5, One, "a", 5},
		{3, 10, Ambiguous, "", -1},
		{3, 20, One, "a", 5},
		{4, 5, None, "", -1},
		{4, 4, None, "", -1},
		{1, 50, One, "w", 9},
		{7, 50, One, "w", 9},
		{7, 60, One, "v", 10},
		{7, 66, Ambiguous, "", -1},
		{3, 55, One, "a", 5},
		{schema.Null, 55, One, "w", 9},
	} {
		got := x.Lookup(1, c.tid, c.tick)
		want := Result{State: c.state, Span: c.span}
		if c.id != "" {
			want.Ref = ref(c.id)
		}
		if got != want {
			t.Errorf("thread %d at %d: got %+v, want %+v", c.tid, c.tick, got, want)
		}
	}
	for _, pid := range []int64{2, schema.Null} {
		if got := x.Lookup(pid, 1, 5); got.State != None {
			t.Errorf("process %d: got %+v", pid, got)
		}
	}
}

// randomTrace makes a small trace in which everything collides.
func randomTrace(r *rand.Rand) *schema.Trace {
	t := &schema.Trace{}
	maybe := func(v int64) int64 {
		if r.IntN(6) == 0 {
			return schema.Null
		}
		return v
	}
	byPID := r.IntN(2) == 0
	for range r.IntN(20) {
		key, pid := schema.Null, maybe(r.Int64N(3))
		if byPID {
			key = pid
		}
		l := &t.Launches
		l.KeyPID = append(l.KeyPID, key)
		l.PID = append(l.PID, pid)
		l.TID = append(l.TID, maybe(r.Int64N(2)))
		l.Correlation = append(l.Correlation, maybe(r.Int64N(8)))
		l.ExternalID = append(l.ExternalID, maybe(r.Int64N(8)))
		l.Tick = append(l.Tick, r.Int64N(40))
		l.Name = append(l.Name, uint32(r.IntN(4)))
	}
	t.Launches.Names = []string{"hipLaunchKernel", "hipMemcpyAsync", "hipMemsetAsync", "hipStreamSynchronize"}
	for range r.IntN(20) {
		g := &t.GPU
		g.Start, g.End = append(g.Start, 0), append(g.End, 1)
		g.Kind = append(g.Kind, schema.Kind(r.IntN(3)))
		g.Correlation = append(g.Correlation, maybe(r.Int64N(8)))
		g.ExternalID = append(g.ExternalID, maybe(r.Int64N(8)))
		if byPID {
			g.PID = append(g.PID, maybe(r.Int64N(3)))
		}
	}
	for range r.IntN(25) {
		start := r.Int64N(40)
		t.Spans = append(t.Spans, schema.Span{
			PID: r.Int64N(3), TID: r.Int64N(2), Start: start, End: start + r.Int64N(20) - 2,
			Ref: ref(fmt.Sprint(r.IntN(3))), ProcessWide: r.IntN(3) == 0,
		})
	}
	return t
}

func TestResolveAgainstScan(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		trace := randomTrace(r)
		for _, o := range []Options{{}, Careful, {ByProcess: true}, {ExternalID: true}} {
			links := Resolve(trace, o)
			for i := range trace.GPU.Len() {
				got, want := links.At(trace, i), LinkGPUEvent(trace, i, o)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("event %d of %+v: got %+v, want %+v", i, trace, got, want)
				}
				if s := links.Span(i); s >= 0 {
					checkInnermost(t, trace, int(links.Launch[i]), int(s))
				}
			}
			checkCounts(t, trace, links)
		}
	}
}

// checkInnermost asserts that no span of the same kind that holds the call
// starts after the one chosen.
func checkInnermost(t *testing.T, trace *schema.Trace, launch, chosen int) {
	t.Helper()
	l, c := &trace.Launches, trace.Spans[chosen]
	for _, s := range trace.Spans {
		if s.ProcessWide == c.ProcessWide && s.PID == l.PID[launch] && (c.ProcessWide || s.TID == l.TID[launch]) &&
			s.Start <= l.Tick[launch] && l.Tick[launch] < s.End && s.Start > c.Start {
			t.Fatalf("chose %+v, but %+v starts later", c, s)
		}
	}
}

func checkCounts(t *testing.T, trace *schema.Trace, l *Links) {
	t.Helper()
	c := l.Counts
	n := int64(trace.GPU.Len())
	if sum := c.InIteration + c.AmbiguousRange + c.OutsideRange; sum != c.Launched {
		t.Fatalf("%+v: %d with a launch", c, sum)
	}
	if sum := c.Launched - c.ByExternalID + c.NoLaunch + c.AmbiguousLaunch + c.NoCorrelation; sum != n {
		t.Fatalf("%+v: %d of %d events", c, sum, n)
	}
	marked := int64(0)
	for _, s := range l.Superseded {
		if s {
			marked++
		}
	}
	if marked != c.Superseded {
		t.Fatalf("%+v: %d marked superseded", c, marked)
	}
}

func TestSeveralProcesses(t *testing.T) {
	l := schema.Launches{
		KeyPID:      []int64{schema.Null, schema.Null, schema.Null, schema.Null},
		Correlation: []int64{1, 1, 2, 2},
		PID:         []int64{10, 20, 10, 10}, TID: []int64{1, 1, 1, 1},
		Tick: []int64{1, 2, 3, 4}, Name: []uint32{0, 0, 0, 0}, Names: []string{"x"},
	}
	trace := &schema.Trace{Launches: l}
	trace.GPU = schema.GPUEvents{Start: []int64{0, 0}, End: []int64{1, 1}, Correlation: []int64{1, 2}}

	careful := Resolve(trace, Careful)
	if want := []int32{-1, 3}; !slices.Equal(careful.Launch, want) {
		t.Errorf("careful: launches %v, want %v", careful.Launch, want)
	}
	if careful.Reason[0] != AmbiguousLaunch || careful.Counts.AmbiguousLaunch != 1 {
		t.Errorf("careful: %v %+v", careful.Reason, careful.Counts)
	}
	if want := []bool{false, false, true, false}; !slices.Equal(careful.Superseded, want) {
		t.Errorf("careful: superseded %v, want %v", careful.Superseded, want)
	}
	// The reference takes the last call, whichever process made it.
	plain := Resolve(trace, Options{})
	if want := []int32{1, 3}; !slices.Equal(plain.Launch, want) {
		t.Errorf("reference: launches %v, want %v", plain.Launch, want)
	}
	if want := []bool{true, false, true, false}; !slices.Equal(plain.Superseded, want) {
		t.Errorf("reference: superseded %v, want %v", plain.Superseded, want)
	}
}

// TestLongSpans guards against time that grows with the square of the spans:
// one long span over many short ones, and many spans nested in each other.
func TestLongSpans(t *testing.T) {
	const n = 200_000
	trace := &schema.Trace{Launches: schema.Launches{Names: []string{"x"}}}
	for i := range int64(n) {
		trace.Spans = append(trace.Spans,
			schema.Span{PID: 1, TID: 1, Start: i, End: 2*n - i, Ref: ref("a")},
			schema.Span{PID: 1, TID: 2, Start: 2 * i, End: 2*i + 1, Ref: ref(fmt.Sprint(i % 1000))})
		l := &trace.Launches
		l.KeyPID, l.Correlation = append(l.KeyPID, schema.Null), append(l.Correlation, i+1)
		l.PID, l.TID = append(l.PID, 1), append(l.TID, 1+i%2)
		l.Tick, l.Name = append(l.Tick, i), append(l.Name, 0)
	}
	trace.Spans = append(trace.Spans, schema.Span{PID: 1, TID: 2, Start: 0, End: 2 * n, Ref: ref("long")})
	start := time.Now()
	Resolve(trace, Careful)
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestIndexSpans(t *testing.T) {
	trace := &schema.Trace{Spans: []schema.Span{
		{PID: 2, TID: 1, Start: 0, End: 1, Ref: ref("c")},
		{PID: 1, TID: 1, Start: 5, End: 6, Ref: ref("b")},
		{PID: 1, TID: 1, Start: 5, End: 9, Ref: ref("a")},
	}}
	x := IndexSpans(trace)
	if trace.Spans[0].Ref != ref("a") || trace.Spans[2].Ref != ref("c") {
		t.Errorf("order %+v", trace.Spans)
	}
	if got := x.Lookup(1, 1, 7); got.Ref != ref("a") || got.Span != 0 {
		t.Errorf("got %+v", got)
	}
}
