package schema

import "math"

// Null stands for an unknown integer in the columns of a Trace. No time, ID or
// size that a profiler writes reaches it.
const Null int64 = math.MinInt64

// Kind is the kind of a GPU event.
type Kind uint8

// Kinds of GPU events.
const (
	Kernel Kind = iota
	Memcpy
	Memset
	Graph // a CUDA graph traced as a whole
)

// String returns the name used in tables and records.
func (k Kind) String() string {
	switch k {
	case Kernel:
		return "gpu_kernel"
	case Memcpy:
		return "gpu_memcpy"
	case Memset:
		return "gpu_memset"
	case Graph:
		return "gpu_graph"
	}
	return "invalid"
}

// Opt is a value that may be unknown.
type Opt[T any] struct {
	V  T
	OK bool
}

// Some returns a known value.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, OK: true} }

// OptInt turns a column value into an optional one.
func OptInt(v int64) Opt[int64] {
	if v == Null {
		return Opt[int64]{}
	}
	return Some(v)
}

// EntityRef names an iteration: an ID within a producer.
type EntityRef struct {
	Producer string
	ID       string
}

// GPUEvent is one kernel, copy, memset or graph as the trace recorded it.
type GPUEvent struct {
	StartNS, EndNS int64
	Kind           Kind
	Name           string
	Device         Opt[int64]
	Stream         Opt[int64]
	Correlation    Opt[int64] // 0 in the source counts as unknown
	GraphID        Opt[int64] // 0 in the source counts as unknown
	GraphNodeID    Opt[int64]
	PID            Opt[int64] // only where the source names the process of GPU work
	DeviceUUID     Opt[string]
	DeviceName     Opt[string]
}

// GPUEvents holds the GPU events of a trace as columns, in source order. A nil
// optional column (PID, GraphNode, UUID, DeviceName, Flag, EventIndex,
// ExternalID) is unknown for every event.
type GPUEvents struct {
	Start, End  []int64 // ns
	Kind        []Kind
	Name        []uint32 // index into Names
	Device      []int64  // Null where unknown, as in the columns below
	Stream      []int64
	Correlation []int64
	Graph       []int64
	GraphNode   []int64
	PID         []int64
	UUID        []uint32 // index into Names plus one; 0 is unknown
	DeviceName  []uint32 // index into Names plus one; 0 is unknown
	ExternalID  []int64
	EventIndex  []int64
	// Excluded marks events whose times cannot be trusted (negative, missing or
	// lost): they stay in the trace and are left out of every busy time.
	Excluded []bool
	Names    []string
}

// Len returns the number of events.
func (g *GPUEvents) Len() int { return len(g.Start) }

func at(col []int64, i int) Opt[int64] {
	if col == nil {
		return Opt[int64]{}
	}
	return OptInt(col[i])
}

func textAt(col []uint32, names []string, i int) Opt[string] {
	if col == nil || col[i] == 0 {
		return Opt[string]{}
	}
	return Some(names[col[i]-1])
}

// At returns event i.
func (g *GPUEvents) At(i int) GPUEvent {
	return GPUEvent{
		StartNS: g.Start[i], EndNS: g.End[i], Kind: g.Kind[i], Name: g.Names[g.Name[i]],
		Device: at(g.Device, i), Stream: at(g.Stream, i), Correlation: at(g.Correlation, i),
		GraphID: at(g.Graph, i), GraphNodeID: at(g.GraphNode, i), PID: at(g.PID, i),
		DeviceUUID: textAt(g.UUID, g.Names, i), DeviceName: textAt(g.DeviceName, g.Names, i),
	}
}

// IsExcluded reports whether event i is left out of busy times.
func (g *GPUEvents) IsExcluded(i int) bool { return g.Excluded != nil && g.Excluded[i] }

// LaunchCall is the runtime or driver call that launched GPU work.
type LaunchCall struct {
	PID, TID int64
	TSUS     float64 // start in µs as the source counts it
	Name     string
}

// Launches holds launch calls as columns, in source order, duplicates included.
type Launches struct {
	KeyPID      []int64 // process part of the launch key; nil where keys have none, Null where one has none
	Correlation []int64 // Null where the call has none
	PID, TID    []int64 // Null where the source has text there
	Tick        []int64 // start on the clock that Spans uses
	Name        []uint32
	ExternalID  []int64 // nil when unknown for every call
	EventIndex  []int64 // nil when unknown for every call
	Names       []string
	FloatTicks  bool // Tick is FloatTick(µs) and not ns
}

// Key returns the process part of the launch key of call i, Null where it has
// none.
func (l *Launches) Key(i int) int64 {
	if l.KeyPID == nil {
		return Null
	}
	return l.KeyPID[i]
}

// Len returns the number of calls.
func (l *Launches) Len() int { return len(l.Tick) }

// At returns call i.
func (l *Launches) At(i int) LaunchCall {
	c := LaunchCall{PID: l.PID[i], TID: l.TID[i], Name: l.Names[l.Name[i]]}
	if l.FloatTicks {
		c.TSUS = TickFloat(l.Tick[i])
	} else {
		c.TSUS = float64(l.Tick[i]) / 1e3
	}
	return c
}

// Span is an iteration range on a thread: the half-open interval [Start, End).
type Span struct {
	PID, TID   int64
	Start, End int64 // ticks
	Ref        EntityRef
	EventIndex int64 // Null where unknown
	// ProcessWide ranges hold launches of every thread of the process, the way
	// ProfilerStep and engine step marks do; other ranges only those of their
	// own thread.
	ProcessWide bool
}

// FloatTick maps a finite float64 to an integer that orders the same way, so
// that one comparison serves integer and floating-point clocks.
func FloatTick(f float64) int64 {
	if f == 0 {
		f = 0 // -0 orders as 0
	}
	b := int64(math.Float64bits(f))
	if b < 0 {
		b ^= math.MaxInt64
	}
	return b
}

// TickFloat is the inverse of FloatTick.
func TickFloat(t int64) float64 {
	if t < 0 {
		t ^= math.MaxInt64
	}
	return math.Float64frombits(uint64(t))
}

// Trace is what linking and activities need of one trace, from any source.
type Trace struct {
	Source        string // kineto or nsys
	BaseNS        int64
	Host          Opt[string]
	TraceID       Opt[string]
	Rank          Opt[int64]
	WorldSize     Opt[int64]
	EngineVersion Opt[string]
	CUPTIVersion  Opt[string]
	DeviceNames   map[int64]string

	GPU      GPUEvents
	Launches Launches
	Spans    []Span

	// Processes gives the process ID of a process key, where the columns PID,
	// KeyPID and Span.PID hold keys that are not process IDs: reports over
	// several hosts or virtual machines repeat process IDs, and traces may give
	// text for one (Null here). nil where they do hold process IDs.
	Processes map[int64]int64

	Notes       []string
	NotImported map[string]int64

	// The two maps below are filled only in the compatibility mode and nil
	// otherwise. Odd holds header values of a type that the fields above cannot
	// hold, by key: host, trace_id, rank, world_size, engine_version. Big holds
	// the decimal text of IDs beyond int64, by the value that stands for them
	// in the columns.
	Odd map[string]OddHeader
	Big map[int64]string
	// NullName is the entry of GPU.Names that stands for a name that is null
	// in a report; compatibility mode only.
	NullName Opt[uint32]
}

// ProcessID returns the process ID of a process key, Null for Null.
func (t *Trace) ProcessID(key int64) int64 {
	if pid, ok := t.Processes[key]; ok {
		return pid
	}
	return key
}

// OddHeader is a header value that is not of the type it should be.
type OddHeader struct {
	JSON  string // as recorded
	Text  string // the text that the reference makes of it
	Truth bool   // whether the reference takes it for a value at all
}
