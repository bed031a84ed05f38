package activity

import (
	"fmt"

	"tracelake/analyze/internal/posindex"
	"tracelake/analyze/interval"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// Detail is the size of a record.
type Detail uint8

// Details.
const (
	Launch Detail = iota // one record per launch, device and kind
	Kernel               // one record per GPU event
)

// String returns launch or kernel.
func (d Detail) String() string {
	if d == Kernel {
		return "kernel"
	}
	return "launch"
}

// ParseDetail reads launch or kernel; anything else is a UsageError.
func ParseDetail(s string) (Detail, error) {
	switch s {
	case "launch":
		return Launch, nil
	case "kernel":
		return Kernel, nil
	}
	return 0, &UsageError{fmt.Sprintf("detail must be launch or kernel, not %q", s)}
}

// Groups are records as columns, one entry per record, in the order of each
// record's first event in the source.
type Groups struct {
	Detail Detail
	First  []int32 // first event in source order
	// Start and End are the earliest start and latest end of the record, and
	// schema.Null where every event is excluded. Busy is the length of the
	// union and Summed the plain sum of durations. Excluded events count in
	// none of them.
	Start, End, Busy, Summed []int64
	Excluded                 []int32 // excluded events; nil where there are none

	members []int32 // events of record 0, of record 1, …, each in source order
	offset  []int32 // where the members of a record start; nil at detail kernel
	merged  []interval.Interval
	mergedN []int32 // where the merged intervals of a record start; nil at detail kernel
	trace   *schema.Trace
	links   *link.Links
}

// Len returns the number of records.
func (g *Groups) Len() int { return len(g.First) }

// Members returns the events of record i in source order.
func (g *Groups) Members(i int) []int32 {
	if g.offset == nil {
		return g.members[i : i+1]
	}
	return g.members[g.offset[i]:g.offset[i+1]]
}

// Intervals returns the union of the events of record i as absolute times. It
// is nil for a record of one event, whose union is [Start, End).
func (g *Groups) Intervals(i int) []interval.Interval {
	if g.mergedN == nil || len(g.Members(i)) == 1 {
		return nil
	}
	return g.merged[g.mergedN[i]:g.mergedN[i+1]]
}

// LaunchOf returns the position of the launch call of record i, or -1.
func (g *Groups) LaunchOf(i int) int32 { return g.links.Launch[g.First[i]] }

// Stream returns the stream of record i where all events share one.
func (g *Groups) Stream(i int) schema.Opt[int64] {
	return schema.OptInt(g.Shared(g.trace.GPU.Stream, i))
}

// Graph returns the CUDA graph of record i where all events share one.
func (g *Groups) Graph(i int) schema.Opt[int64] { return schema.OptInt(g.Shared(g.trace.GPU.Graph, i)) }

// Shared returns the value that all events of record i have in a column of the
// trace, schema.Null where there are several.
func (g *Groups) Shared(col []int64, i int) int64 {
	v := col[g.First[i]]
	for _, m := range g.Members(i) {
		if col[m] != v {
			return schema.Null
		}
	}
	return v
}

// Group makes the records of a linked trace. At detail launch, events belong
// together that share device, kind, process and correlation ID; whether the
// launch call is known does not matter. Events without a correlation ID stay
// alone.
func Group(t *schema.Trace, links *link.Links, detail Detail) *Groups {
	g := &Groups{Detail: detail, trace: t, links: links}
	if detail == Kernel {
		g.members = make([]int32, t.GPU.Len())
		for i := range g.members {
			g.members[i] = int32(i)
		}
		g.First = g.members
	} else {
		g.partition()
	}
	g.measure()
	return g
}

// partition fills First, members and offset.
func (g *Groups) partition() {
	e := &g.trace.GPU
	n := e.Len()
	record := make([]int32, n)
	table := posindex.New(n) // first event of each key
	for i := range int32(n) {
		first := int32(-1)
		if corr := e.Correlation[i]; corr != schema.Null {
			pid := pidOf(e, i)
			hash := posindex.Hash(corr, e.Device[i], pid^int64(e.Kind[i]))
			same := func(p int32) bool {
				return e.Correlation[p] == corr && e.Device[p] == e.Device[i] &&
					e.Kind[p] == e.Kind[i] && pidOf(e, p) == pid
			}
			if first = table.Find(hash, same); first < 0 {
				table.Put(hash, i, same)
			}
		}
		if first < 0 {
			record[i] = int32(len(g.First))
			g.First = append(g.First, i)
		} else {
			record[i] = record[first]
		}
	}
	g.offset = make([]int32, len(g.First)+1)
	for _, r := range record {
		g.offset[r+1]++
	}
	for i := range g.First {
		g.offset[i+1] += g.offset[i]
	}
	next := append([]int32(nil), g.offset...)
	g.members = make([]int32, n)
	for i, r := range record {
		g.members[next[r]] = int32(i)
		next[r]++
	}
}

// measure fills the times.
func (g *Groups) measure() {
	n := g.Len()
	e := &g.trace.GPU
	g.Start, g.End = make([]int64, n), make([]int64, n)
	g.Busy, g.Summed = make([]int64, n), make([]int64, n)
	if e.Excluded != nil {
		g.Excluded = make([]int32, n)
	}
	if g.offset != nil {
		g.mergedN = make([]int32, 1, n+1)
	}
	for i := range n {
		members := g.Members(i)
		at := len(g.merged)
		start, end := schema.Null, schema.Null
		for _, m := range members {
			if e.IsExcluded(int(m)) {
				g.Excluded[i]++
				continue
			}
			s, f := e.Start[m], e.End[m]
			if start == schema.Null || s < start {
				start = s
			}
			end = max(end, f)
			g.Summed[i] = interval.AddSat(g.Summed[i], subSat(f, s))
			if len(members) > 1 {
				g.merged = append(g.merged, interval.Interval{Start: s, End: f})
			}
		}
		g.Start[i], g.End[i] = start, end
		if len(members) == 1 {
			g.Busy[i] = interval.Interval{Start: start, End: end}.Len()
		} else {
			interval.Sort(g.merged[at:])
			union := interval.MergeSorted(g.merged[at:])
			g.merged = g.merged[:at+len(union)]
			g.Busy[i] = interval.Length(union)
		}
		if g.mergedN != nil {
			g.mergedN = append(g.mergedN, int32(len(g.merged)))
		}
	}
}

// subSat returns a-b without wrapping.
func subSat(a, b int64) int64 {
	if d := a - b; (a < b) == (d < 0) {
		return d
	}
	if a < b {
		return schema.Null
	}
	return interval.Interval{Start: b, End: a}.Len()
}

func pidOf(e *schema.GPUEvents, i int32) int64 {
	if e.PID == nil {
		return schema.Null
	}
	return e.PID[i]
}
