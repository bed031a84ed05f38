package convert

import (
	"slices"

	"tracelake/analyze/activity"
	"tracelake/analyze/link"
	"tracelake/kineto"
	"tracelake/schema"
)

// Flags of times, as codes of timeFlags.
const (
	flagNone uint8 = iota
	flagNegative
	flagMissing
	flagZero
	flagBad
	flagOverruns
)

var timeFlags = []string{"", "negative_duration", "missing_duration", "zero_time", "bad_time", "overruns_next"}

// times holds the times of a retained table with the base added.
type times struct {
	start, end []int64 // ns; schema.Null where unknown. end is nil for launches, which are linked by start
	flag       []uint8
	rows       rows
	byStart    []int32 // made by order
}

// durations returns the recorded durations.
func (t *times) durations() []int64 { return t.rows.Values("dur_ns") }

// ends returns the ends, which not all tables keep.
func (t *times) ends() []int64 {
	if t.end != nil {
		return t.end
	}
	out := t.durations()
	for i, d := range out {
		out[i] = endOf(t.start[i], d)
	}
	return out
}

// endOf returns start plus duration, schema.Null where either is unknown, the
// duration is negative or the sum out of range.
func endOf(start, dur int64) int64 {
	if start == schema.Null || dur < 0 { // Null is negative
		return schema.Null
	}
	if e := start + dur; e >= start {
		return e
	}
	return schema.Null
}

// readTimes judges the recorded times of a table.
func readTimes(res *loaded, r rows) *times {
	t := &times{start: r.Values("start_ns"), rows: r}
	dur := t.durations()
	t.flag = make([]uint8, len(dur))
	for i, d := range dur {
		s := t.start[i]
		switch {
		case s == schema.Null:
			t.flag[i] = flagBad
		case d == schema.Null:
			t.flag[i] = flagMissing
		case d < 0:
			t.flag[i] = flagNegative
		case s == 0 && res.zeroLost:
			t.flag[i] = flagZero
		}
		if s != schema.Null {
			abs, ok := kineto.AddBase(s, res.base)
			if !ok {
				abs, t.flag[i] = schema.Null, flagBad
			}
			t.start[i] = abs
		}
		dur[i] = endOf(t.start[i], d)
		if t.start[i] != schema.Null && d >= 0 && dur[i] == schema.Null {
			t.flag[i] = flagBad
		}
	}
	t.end = dur
	return t
}

func (t *times) excluded() []bool {
	var out []bool
	for i, f := range t.flag {
		if f != flagNone && f != flagOverruns {
			if out == nil {
				out = make([]bool, len(t.flag))
			}
			out[i] = true
		}
	}
	return out
}

// order returns the rows sorted by start, rows without one last.
func (t *times) order() []int32 {
	if t.byStart == nil {
		t.byStart = t.sortByStart()
	}
	return t.byStart
}

func (t *times) sortByStart() []int32 { return sortRuns(t.start) }

// model is a trace ready for linking, with what its tables need besides.
type model struct {
	res      *loaded
	trace    *schema.Trace
	gpu      *times
	launches *times
	ranges   *times
	clipped  []int64 // ns up to the next start on the stream; schema.Null where not clipped
	marks    rangeMarks
	noName   uint32 // the empty string in the names of the trace
}

// rangeMarks tells which ranges mark iterations.
type rangeMarks struct {
	refs     []schema.EntityRef // by row of ranges; zero where it marks none
	producer string             // family used for linking
	distinct int64
}

// numbersOf returns a column of numbers of strings, none for Null.
func numbersOf(v []int64, none uint32) []uint32 {
	out := make([]uint32, len(v))
	for i, x := range v {
		out[i] = none
		if x != schema.Null {
			out[i] = uint32(x)
		}
	}
	return out
}

// newModel builds the model of what a reader kept in memory, with the columns
// of the trace that linking needs. fill adds the others, of which an import
// reads one at a time.
func newModel(res *loaded, marks *link.Marks) *model {
	m := &model{res: res, gpu: readTimes(res, res.gpu), launches: readTimes(res, res.launches), ranges: readTimes(res, res.ranges)}
	m.launches.end = nil
	h := &res.header
	names := res.gpu.Names()
	m.noName = uint32(len(names))
	names = append(names, "")
	t := &schema.Trace{
		Source: res.source, BaseNS: res.base, Host: h.Host, TraceID: h.TraceID, Rank: h.Rank, WorldSize: h.WorldSize,
		EngineVersion: h.VLLMVersion, CUPTIVersion: h.CUPTIVersion, DeviceNames: map[int64]string{},
	}
	m.trace = t
	for _, d := range h.Devices {
		if d.process == schema.Null {
			t.DeviceNames[d.ordinal] = d.Name.V
		}
	}
	g := &t.GPU
	g.Names = names
	g.Kind = make([]schema.Kind, res.gpu.Len())
	for i, k := range res.gpu.Values("kind") {
		g.Kind[i] = schema.Kind(k)
	}
	g.Device, g.Correlation = res.gpu.Values("device"), res.gpu.Values("correlation")
	if res.gpu.Has("external_id") && slices.Contains(g.Correlation, schema.Null) { // needed for those only
		g.ExternalID = res.gpu.Values("external_id")
	}
	g.Excluded = m.gpu.excluded()
	g.Start, g.End = m.gpu.start, m.gpu.end
	for i, x := range g.Excluded {
		if x { // times that nothing counts, but that are numbers
			g.Start = cloneOnce(g.Start, m.gpu.start)
			g.End = cloneOnce(g.End, m.gpu.end)
			if g.Start[i] == schema.Null {
				g.Start[i] = 0
			}
			g.End[i] = g.Start[i]
		}
	}
	l := &t.Launches
	l.Names = names
	l.Correlation = res.launches.Values("correlation")
	l.PID, l.TID = m.threads(res.launches, "pid")
	if g.ExternalID != nil && res.launches.Has("external_id") {
		l.ExternalID = res.launches.Values("external_id")
		l.Name = m.launchNames()
	}
	l.Tick = m.launches.start
	if res.byProcess {
		m.addProcesses()
	}
	m.addSpans(marks, names)
	m.findOverruns()
	return m
}

// threads returns the process and thread of each row. Those that are text have keys
// instead, far from what systems give to processes.
func (m *model) threads(r rows, process string) (pid, tid []int64) {
	pid, tid = r.Values(process), r.Values("tid")
	for col, ids := range map[string][]int64{"pid_text": pid, "tid_text": tid} {
		if !r.Has(col) {
			continue
		}
		for i, t := range r.Values(col) {
			if ids[i] == schema.Null && t != schema.Null {
				ids[i] = textKey - t
				if m.trace.Processes == nil {
					m.trace.Processes = map[int64]int64{}
				}
				m.trace.Processes[ids[i]] = schema.Null
			}
		}
	}
	return pid, tid
}

// textKey less the number of a text is the key of a process or thread.
const textKey = -1 << 62

// fill adds the columns of the trace that linking does not need.
func (m *model) fill() *model {
	g, l := &m.trace.GPU, &m.trace.Launches
	g.Name, l.Name = m.gpuNames(), m.launchNames()
	g.Stream, g.Graph = m.res.gpu.Values("stream"), m.res.gpu.Values("graph_id")
	g.EventIndex, l.EventIndex = m.res.gpu.Values("event_index"), m.res.launches.Values("event_index")
	return m
}

// gpuNames returns the names of GPU events as positions in GPU.Names.
func (m *model) gpuNames() []uint32 { return numbersOf(m.res.gpu.Values("name"), m.noName) }

// launchNames returns the names of launches as positions in Launches.Names.
func (m *model) launchNames() []uint32 { return numbersOf(m.res.launches.Values("api"), m.noName) }

// launchPIDs returns the keys of the processes that made launches.
func (m *model) launchPIDs() []int64 {
	if m.trace.Launches.PID != nil {
		return m.trace.Launches.PID
	}
	return m.res.launches.Values("pid")
}

// freeLinking frees the columns that only linking needed.
func (m *model) freeLinking() {
	g, l := &m.trace.GPU, &m.trace.Launches
	g.Device, g.Correlation, g.ExternalID = nil, nil, nil
	l.Correlation, l.TID, l.ExternalID, l.Name, l.KeyPID = nil, nil, nil, nil, nil
	if !m.res.byProcess {
		l.PID = nil
	}
}

// freeGrouping frees what only grouping needed.
func (m *model) freeGrouping() {
	m.freeLinking()
	m.gpu.start, m.gpu.end = nil, nil
	m.trace.GPU.Start, m.trace.GPU.End, m.trace.GPU.Excluded = nil, nil, nil
}

// group loads again what grouping needs.
func (m *model) group(links *link.Links, detail activity.Detail) *activity.Groups {
	g := &m.trace.GPU
	if g.Device == nil {
		g.Device = m.res.gpu.Values("device")
	}
	if g.Correlation == nil {
		g.Correlation = m.res.gpu.Values("correlation")
	}
	return activity.Group(m.trace, links, detail)
}

// cloneOnce copies v unless it is a copy of orig already.
func cloneOnce(v, orig []int64) []int64 {
	if len(v) > 0 && &v[0] == &orig[0] {
		return append([]int64(nil), v...)
	}
	return v
}

// findOverruns flags GPU events that end after a later event of the same
// stream has ended: one of the two durations is wrong, or both ran at once.
func (m *model) findOverruns() {
	g := &m.trace.GPU
	type lane struct{ process, device, stream int64 }
	streams := m.res.gpu.Values("stream")
	var index []int64
	last := map[lane]int32{} // latest event so far, by start
	for _, i := range m.gpu.order() {
		if m.gpu.flag[i] != flagNone || m.gpu.end[i] == schema.Null {
			continue
		}
		// Branches of a CUDA graph run beside each other, whatever stream they name.
		if g.Kind[i] == schema.Graph || g.GraphNode != nil && g.GraphNode[i] != schema.Null {
			continue
		}
		k := lane{schema.Null, g.Device[i], streams[i]}
		if g.PID != nil {
			k.process = g.PID[i]
		}
		p, ok := last[k]
		if ok && m.gpu.end[p] > m.gpu.end[i] && m.gpu.end[i] > m.gpu.start[i] {
			// p runs over i; p stays the one that later events are held against.
			if m.gpu.flag[p] == flagNone {
				m.gpu.flag[p] = flagOverruns
				if m.clipped == nil {
					m.clipped = make([]int64, g.Len())
					for x := range m.clipped {
						m.clipped[x] = schema.Null
					}
				}
				m.clipped[p] = m.gpu.start[i] - m.gpu.start[p]
				if index == nil {
					index = m.res.gpu.Values("event_index")
				}
				m.res.diags.Add(schema.OverrunsNext, schema.Null, index[p], 1, "ends after the next event of its stream has ended")
			}
			continue
		}
		last[k] = i
	}
}
