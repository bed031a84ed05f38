package activity

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"tracelake/analyze/interval"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// event is a GPU event of a test trace.
type event struct {
	start, end                         int64
	kind                               schema.Kind
	device, stream, correlation, graph int64
	excluded                           bool
}

func traceOf(events ...event) *schema.Trace {
	t := &schema.Trace{Source: "kineto"}
	g := &t.GPU
	g.Names = []string{"k"}
	for _, e := range events {
		g.Start, g.End = append(g.Start, e.start), append(g.End, e.end)
		g.Kind, g.Name = append(g.Kind, e.kind), append(g.Name, 0)
		g.Device, g.Stream = append(g.Device, e.device), append(g.Stream, e.stream)
		g.Correlation, g.Graph = append(g.Correlation, e.correlation), append(g.Graph, e.graph)
		g.Excluded = append(g.Excluded, e.excluded)
	}
	return t
}

// slowGroups says in the plainest way which events belong together.
func slowGroups(t *schema.Trace) (out [][]int32) {
	at := map[string]int{}
	for i := range t.GPU.Len() {
		e := t.GPU.At(i)
		key := fmt.Sprint(e.Device, e.Kind, e.Correlation)
		if p, ok := at[key]; ok && e.Correlation.OK {
			out[p] = append(out[p], int32(i))
			continue
		}
		at[key] = len(out)
		out = append(out, []int32{int32(i)})
	}
	return out
}

func TestGroupAgainstSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	maybe := func(n int64) int64 {
		if v := r.Int64N(n + 1); v < n {
			return v
		}
		return schema.Null
	}
	for range 1000 {
		var events []event
		for range r.IntN(40) {
			start := r.Int64N(50)
			events = append(events, event{
				start, start + r.Int64N(8), schema.Kind(r.IntN(2)), maybe(2), maybe(3), maybe(4), maybe(2), r.IntN(8) == 0,
			})
		}
		trace := traceOf(events...)
		links := link.Resolve(trace, link.Careful)
		g := Group(trace, links, Launch)
		want := slowGroups(trace)
		if g.Len() != len(want) {
			t.Fatalf("%d records, want %d", g.Len(), len(want))
		}
		for i, members := range want {
			if !slices.Equal(g.Members(i), members) || g.First[i] != members[0] {
				t.Fatalf("record %d has events %v, want %v", i, g.Members(i), members)
			}
			checkTimes(t, trace, g, i)
		}
		checkDevices(t, trace, g)
		kernels := Group(trace, links, Kernel)
		for i := range events {
			if !slices.Equal(kernels.Members(i), []int32{int32(i)}) || kernels.Intervals(i) != nil {
				t.Fatalf("record %d has events %v", i, kernels.Members(i))
			}
			checkTimes(t, trace, kernels, i)
		}
		checkDevices(t, trace, kernels)
	}
}

func timed(t *schema.Trace, members []int32) (out []interval.Interval, sum int64) {
	for _, m := range members {
		if !t.GPU.Excluded[m] {
			out = append(out, interval.Interval{Start: t.GPU.Start[m], End: t.GPU.End[m]})
			sum += t.GPU.End[m] - t.GPU.Start[m]
		}
	}
	return out, sum
}

func checkTimes(t *testing.T, trace *schema.Trace, g *Groups, i int) {
	t.Helper()
	v, sum := timed(trace, g.Members(i))
	if g.Busy[i] != interval.Length(interval.Merge(v)) || g.Summed[i] != sum || int(g.Excluded[i]) != len(g.Members(i))-len(v) {
		t.Fatalf("record %d of %v: busy %d, summed %d, excluded %d", i, v, g.Busy[i], g.Summed[i], g.Excluded[i])
	}
	if len(g.Members(i)) > 1 && !slices.Equal(g.Intervals(i), interval.Merge(v)) {
		t.Fatalf("record %d of %v: intervals %v", i, v, g.Intervals(i))
	}
	start, end := schema.Null, schema.Null
	for k, x := range v {
		if k == 0 {
			start, end = x.Start, x.End
		}
		start, end = min(start, x.Start), max(end, x.End)
	}
	if g.Start[i] != start || g.End[i] != end {
		t.Fatalf("record %d of %v: from %d to %d", i, v, g.Start[i], g.End[i])
	}
}

func checkDevices(t *testing.T, trace *schema.Trace, g *Groups) {
	t.Helper()
	byDevice := map[int64][]int32{}
	for i, d := range trace.GPU.Device {
		byDevice[d] = append(byDevice[d], int32(i))
	}
	totals := g.DeviceTotals()
	if len(totals) != len(byDevice) {
		t.Fatalf("%d devices, want %d", len(totals), len(byDevice))
	}
	for _, d := range totals {
		device := schema.Null
		if d.Device.OK {
			device = d.Device.V
		}
		members := byDevice[device]
		v, sum := timed(trace, members)
		want := DeviceTotal{
			Device: d.Device, FirstEvent: members[0], Events: int64(len(members)), Excluded: int64(len(members) - len(v)),
			BusyNS: interval.Length(interval.Merge(v)), SummedNS: sum, SpanNS: d.SpanNS,
		}
		for k, x := range v {
			if k == 0 {
				want.FirstNS, want.LastNS = schema.Some(x.Start), schema.Some(x.End)
			}
			want.FirstNS.V, want.LastNS.V = min(want.FirstNS.V, x.Start), max(want.LastNS.V, x.End)
		}
		if d != want || d.SpanNS < d.BusyNS || g.Detail == Kernel && d.SpanNS != d.BusyNS {
			t.Fatalf("device %d: got %+v, want %+v", device, d, want)
		}
	}
}

func TestManyDevices(t *testing.T) {
	var events []event
	for i := range int64(200_000) {
		events = append(events, event{start: i, end: i + 1, device: i, correlation: i + 1})
	}
	trace := traceOf(events...)
	if got := len(Group(trace, link.Resolve(trace, link.Careful), Launch).DeviceTotals()); got != len(events) {
		t.Errorf("%d devices", got)
	}
}

func TestExcluded(t *testing.T) {
	trace := traceOf(
		event{start: 10, end: 20, correlation: 1},
		event{start: 0, end: 5, correlation: 1, excluded: true},
		event{start: schema.Null, end: schema.Null, correlation: 2, excluded: true},
		event{start: 30, end: 20, correlation: 2, excluded: true},
	)
	r, err := Capture(trace, "x.json", Options{RunID: "r", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	one, two := r.Record(0), r.Record(1)
	if one.StartNS != schema.Some[int64](10) || one.EndNS.V != 20 || one.Excluded != 1 || one.EventCount != 2 || one.BusyNS != 10 {
		t.Errorf("record 1: %+v", one)
	}
	if two.StartNS.OK || two.EndNS.OK || two.Excluded != 2 || two.BusyNS != 0 || two.SummedNS != 0 {
		t.Errorf("record 2: %+v", two)
	}
	if d := r.Summary.Devices["0"]; d.BusyNS != 10 || d.Excluded != 3 || r.Summary.ExcludedGPUEvents != 3 {
		t.Errorf("devices %+v", r.Summary)
	}
	const want = `{"event_count":2,"excluded_events":2,"summed_duration_ns":0,"first_name":"k","device_index":0,"unresolved_reason":"no_launch_record"}`
	if got := string(r.appendMetadata(nil, &two)); got != want {
		t.Errorf("metadata %s, want %s", got, want)
	}
}

// TestNegativeIDs shows what the compatibility mode refuses as a whole.
func TestNegativeIDs(t *testing.T) {
	trace := traceOf(event{start: 1, end: 2, stream: -1, correlation: -5, graph: 3})
	if _, err := Capture(trace, "x", Options{RunID: "r", SessionID: "s", Compat: true}); err == nil {
		t.Error("accepted")
	}
	r, err := Capture(trace, "x", Options{RunID: "r", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	rec := r.Record(0)
	if rec.Stream.OK || rec.Correlation.OK || !rec.Graph.OK || len(r.Summary.Notes) != 1 {
		t.Errorf("%+v %v", rec, r.Summary.Notes)
	}
}

// TestSeveralProcesses pins what the reference gets wrong in a merged trace:
// it gives the work of process 10 to process 20, whose call came last.
func TestSeveralProcesses(t *testing.T) {
	trace := traceOf(event{start: 1, end: 2, correlation: 1})
	trace.Launches = schema.Launches{
		KeyPID: []int64{schema.Null, schema.Null}, Correlation: []int64{1, 1}, PID: []int64{10, 20}, TID: []int64{1, 1},
		Tick: []int64{0, 0}, Name: []uint32{0, 0}, Names: []string{"cudaLaunchKernel"},
	}
	for _, c := range []struct {
		compat bool
		pid    schema.Opt[int64]
		reason string
		procs  []int64
	}{
		{true, schema.Some[int64](20), "launch_outside_iteration_range", []int64{20}},
		{false, schema.Opt[int64]{}, "ambiguous_launch", []int64{10, 20}},
	} {
		r, err := Capture(trace, "x", Options{RunID: "r", SessionID: "s", Compat: c.compat})
		if err != nil {
			t.Fatal(err)
		}
		rec := r.Record(0)
		if rec.PID != c.pid || rec.Reason.String() != c.reason || !reflect.DeepEqual(r.Summary.Processes, c.procs) {
			t.Errorf("compat %v: %+v, processes %v", c.compat, rec, r.Summary.Processes)
		}
	}
}
