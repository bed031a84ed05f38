package link

import "tracelake/schema"

// Reason says why a GPU event has no iteration.
type Reason uint8

// Reasons. The first three are those of the reference.
const (
	Linked           Reason = iota // there is one
	NoLaunch                       // no call has the event's correlation ID
	OutsideIteration               // the call is in no iteration
	AmbiguousRange                 // the call is in spans of several iterations
	AmbiguousLaunch                // calls of several processes have the correlation ID
)

// String returns the name used in tables and records, "" for Linked.
func (r Reason) String() string {
	switch r {
	case Linked:
		return ""
	case NoLaunch:
		return "no_launch_record"
	case OutsideIteration:
		return "launch_outside_iteration_range"
	case AmbiguousRange:
		return "ambiguous_iteration_range"
	case AmbiguousLaunch:
		return "ambiguous_launch"
	}
	return "invalid"
}

// Method says how the launch of an event was found.
type Method uint8

// Methods.
const (
	Unlinked Method = iota
	ByCorrelation
	ByExternalID
)

// String returns the name used in tables, "" for Unlinked.
func (m Method) String() string {
	switch m {
	case ByCorrelation:
		return "correlation"
	case ByExternalID:
		return "external_id"
	}
	return ""
}

// Options choose between careful linking and that of the reference. The zero
// value is the reference's.
type Options struct {
	// ByProcess refuses to choose between calls of several processes with one
	// correlation ID, where the event does not name its process.
	ByProcess bool
	// ExternalID links events without a correlation ID to the only call with
	// their External id.
	ExternalID bool
}

// Careful is what every command uses outside the compatibility mode.
var Careful = Options{ByProcess: true, ExternalID: true}

// Links is the outcome for a whole trace. Positions refer to the columns of
// the trace; -1 is none.
type Links struct {
	// One entry per GPU event.
	Launch []int32 // position in Launches
	Method []Method
	Reason []Reason

	// One entry per launch call.
	LaunchSpan   []int32  // position in Spans of the iteration that holds the call
	LaunchReason []Reason // Linked, OutsideIteration or AmbiguousRange
	Superseded   []bool   // a later call of the same key takes the links

	Counts Counts

	spans []schema.Span
}

// Counts are numbers of events unless they say otherwise.
type Counts struct {
	Launched        int64 // have a launch
	InIteration     int64 // have an iteration
	NoCorrelation   int64 // have no correlation ID
	NoLaunch        int64 // have one that no call has
	AmbiguousLaunch int64 // have one that calls of several processes have
	AmbiguousRange  int64
	OutsideRange    int64
	ByExternalID    int64
	Superseded      int64 // launch calls that a later one replaces
}

// Span returns the position in Spans of the iteration of event i, or -1.
func (l *Links) Span(i int) int32 {
	if l.Launch[i] < 0 {
		return -1
	}
	return l.LaunchSpan[l.Launch[i]]
}

// Ref returns the iteration of event i.
func (l *Links) Ref(i int) (schema.EntityRef, bool) {
	if s := l.Span(i); s >= 0 {
		return l.spans[s].Ref, true
	}
	return schema.EntityRef{}, false
}

// Resolve links every GPU event of a trace.
func Resolve(t *schema.Trace, o Options) *Links {
	n, m := t.GPU.Len(), t.Launches.Len()
	l := &Links{
		Launch: make([]int32, n), Method: make([]Method, n), Reason: make([]Reason, n),
		LaunchSpan: make([]int32, m), LaunchReason: make([]Reason, m),
		spans: t.Spans,
	}
	index := NewIndex(t.Spans)
	for i := range m {
		r := index.Lookup(t.Launches.PID[i], t.Launches.TID[i], t.Launches.Tick[i])
		l.LaunchSpan[i] = r.Span
		l.LaunchReason[i] = [...]Reason{None: OutsideIteration, One: Linked, Ambiguous: AmbiguousRange}[r.State]
	}
	calls := newCalls(&t.Launches, o)
	l.Superseded, l.Counts.Superseded = calls.superseded, calls.nSuperseded
	var external *externalIDs
	if o.ExternalID {
		external = newExternalIDs(t)
	}
	for i := range n {
		var launch int32
		var method Method
		reason := NoLaunch
		if c := t.GPU.Correlation[i]; c != schema.Null {
			launch, reason = calls.find(pidOf(&t.GPU, i), c)
			method = ByCorrelation
		} else {
			l.Counts.NoCorrelation++
			launch = external.find(&t.GPU, i)
			method = ByExternalID
		}
		if launch >= 0 {
			reason = l.LaunchReason[launch]
		} else {
			method = Unlinked
		}
		l.Launch[i], l.Method[i], l.Reason[i] = launch, method, reason
		l.Counts.add(method, reason, t.GPU.Correlation[i] != schema.Null)
	}
	return l
}

func (c *Counts) add(m Method, r Reason, correlated bool) {
	if m != Unlinked {
		c.Launched++
	}
	if m == ByExternalID {
		c.ByExternalID++
	}
	switch r {
	case Linked:
		c.InIteration++
	case OutsideIteration:
		c.OutsideRange++
	case AmbiguousRange:
		c.AmbiguousRange++
	case AmbiguousLaunch:
		c.AmbiguousLaunch++
	case NoLaunch:
		if correlated {
			c.NoLaunch++
		}
	}
}

func pidOf(g *schema.GPUEvents, i int) int64 {
	if g.PID == nil {
		return schema.Null
	}
	return g.PID[i]
}
