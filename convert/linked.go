package convert

import (
	"strings"

	"tracelake/analyze/link"
	"tracelake/schema"
)

// kinds are the values of gpu_events.kind by code.
var kinds = []string{schema.Kernel.String(), schema.Memcpy.String(), schema.Memset.String(), schema.Graph.String()}

// iterationDict holds the distinct producers and IDs of the spans of a trace.
type iterationDict struct {
	producers, ids []string
	producer, id   []int64 // by span
	index          []int64 // event_index by span
}

func newIterationDict(spans []schema.Span) *iterationDict {
	d := &iterationDict{}
	producers, ids := map[string]int64{}, map[string]int64{}
	put := func(m map[string]int64, list *[]string, s string) int64 {
		k, ok := m[s]
		if !ok {
			k = int64(len(*list))
			m[s] = k
			*list = append(*list, s)
		}
		return k
	}
	for _, s := range spans {
		d.producer = append(d.producer, put(producers, &d.producers, s.Ref.Producer))
		d.id = append(d.id, put(ids, &d.ids, s.Ref.ID))
		d.index = append(d.index, s.EventIndex)
	}
	return d
}

// bySpan returns a column that is looked up by span, for rows with the given
// spans.
func bySpan(n int, span func(int) int32, vals []int64, dict []string) source {
	out := make([]int64, n)
	for i := range out {
		out[i] = schema.Null
		if s := span(i); s >= 0 {
			out[i] = vals[s]
		}
	}
	return source{vals: out, dict: dict}
}

var reasons = []string{
	link.Linked: "", link.NoLaunch: link.NoLaunch.String(), link.OutsideIteration: link.OutsideIteration.String(),
	link.AmbiguousRange: link.AmbiguousRange.String(), link.AmbiguousLaunch: link.AmbiguousLaunch.String(),
}

var methods = []string{link.Unlinked: "", link.ByCorrelation: link.ByCorrelation.String(), link.ByExternalID: link.ByExternalID.String()}

func timeColumns(t *times) map[string]func() source {
	return map[string]func() source{
		"start_ns":  func() source { return source{vals: t.start} },
		"dur_ns":    func() source { return source{vals: t.durations()} },
		"end_ns":    func() source { return source{vals: t.ends()} },
		"time_flag": func() source { return codes(t.flag, timeFlags, true) },
	}
}

func iterationColumns(m map[string]func() source, n int, span func(int) int32, d *iterationDict) {
	m["iteration_producer"] = func() source { return bySpan(n, span, d.producer, d.producers) }
	m["iteration_id"] = func() source { return bySpan(n, span, d.id, d.ids) }
	m["iteration_range"] = func() source { return bySpan(n, span, d.index, nil) }
}

// writeLinked writes the tables whose rows were linked, and frees after each
// what the next ones do not need.
func (m *model) writeLinked(s *sink, links *link.Links, rowGroup int) error {
	iter := newIterationDict(m.trace.Spans)
	if err := m.writeLaunches(s, links, iter, rowGroup); err != nil {
		return err
	}
	m.launches.start, m.launches.flag, m.launches.byStart, m.trace.Launches.Tick = nil, nil, nil, nil
	links.LaunchReason, links.Superseded = nil, nil
	if err := (&retainedTable{t: &schema.TableRanges, rows: m.res.ranges, order: m.ranges.order(), extra: m.rangeColumns()}).write(s, rowGroup); err != nil {
		return err
	}
	if err := m.writeGPUEvents(s, links, iter, rowGroup); err != nil {
		return err
	}
	m.gpu.flag, m.gpu.byStart, m.clipped, links.Method = nil, nil, nil, nil
	return nil
}

func (m *model) writeLaunches(s *sink, links *link.Links, iter *iterationDict, rowGroup int) error {
	n := m.trace.Launches.Len()
	cols := timeColumns(m.launches)
	cols["gpu_event_count"] = func() source {
		out := make([]int64, n)
		for _, l := range links.Launch {
			if l >= 0 {
				out[l]++
			}
		}
		return source{vals: out}
	}
	cols["is_superseded"] = func() source {
		out := make([]int64, n)
		for i, x := range links.Superseded {
			if x {
				out[i] = 1
			}
		}
		return source{vals: out}
	}
	cols["unresolved_reason"] = func() source { return codes(links.LaunchReason, reasons, true) }
	iterationColumns(cols, n, func(i int) int32 { return links.LaunchSpan[i] }, iter)
	return (&retainedTable{t: &schema.TableLaunches, rows: m.res.launches, order: m.launches.order(), extra: cols}).write(s, rowGroup)
}

func (m *model) writeGPUEvents(s *sink, links *link.Links, iter *iterationDict, rowGroup int) error {
	n := m.trace.GPU.Len()
	cols := timeColumns(m.gpu)
	cols["kind"] = func() source { return codes(m.trace.GPU.Kind, kinds, false) }
	cols["clipped_dur_ns"] = func() source { return source{vals: m.clipped} }
	cols["launch_id"] = func() source {
		return source{vals: byLaunch(links.Launch, m.res.launches.Values("event_index"))}
	}
	cols["link_method"] = func() source { return codes(links.Method, methods, true) }
	cols["link_status"] = func() source {
		out := make([]uint8, n)
		for i := range out {
			switch {
			case links.Launch[i] >= 0:
			case links.Reason[i] == link.AmbiguousLaunch:
				out[i] = 2
			default:
				out[i] = 1
			}
		}
		return codes(out, []string{"linked", "unlinked", "ambiguous"}, false)
	}
	cols["unresolved_reason"] = func() source { return codes(links.Reason, reasons, true) }
	iterationColumns(cols, n, links.Span, iter)
	for col, part := range map[string]int{"copy_kind": 0, "src_memory": 1, "dst_memory": 2} {
		cols[col] = func() source { return m.copyParts(part) }
	}
	return (&retainedTable{t: &schema.TableGPUEvents, rows: m.res.gpu, order: m.gpu.order(), extra: cols}).write(s, rowGroup)
}

// byLaunch looks a column of launches up for GPU events.
func byLaunch(launch []int32, vals []int64) []int64 {
	out := make([]int64, len(launch))
	for i, l := range launch {
		out[i] = schema.Null
		if l >= 0 {
			out[i] = vals[l]
		}
	}
	return out
}

// copyParts reads what the name of a copy says: its kind and the memories, as
// in "Memcpy HtoD (Pageable -> Device)".
func (m *model) copyParts(part int) source {
	g := &m.trace.GPU
	byName := map[uint32]int64{}
	known := map[string]int64{}
	names := m.gpuNames()
	src := source{vals: make([]int64, g.Len())}
	for i := range src.vals {
		src.vals[i] = schema.Null
		if g.Kind[i] == schema.Kernel {
			continue
		}
		id, ok := byName[names[i]]
		if !ok {
			id = schema.Null
			if v := splitCopy(g.Names[names[i]])[part]; v != "" {
				if id, ok = known[v]; !ok {
					id = int64(len(src.dict))
					known[v] = id
					src.dict = append(src.dict, v)
				}
			}
			byName[names[i]] = id
		}
		src.vals[i] = id
	}
	return src
}

// splitCopy returns kind, source and destination memory of a copy's name, or
// the memory that a memset writes.
func splitCopy(name string) (out [3]string) {
	if rest, ok := strings.CutPrefix(name, "Memset ("); ok {
		out[2] = strings.TrimSuffix(rest, ")")
		return out
	}
	rest, ok := strings.CutPrefix(name, "Memcpy ")
	if !ok {
		return out
	}
	kind, mem, _ := strings.Cut(rest, " (")
	out[0] = kind
	if src, dst, ok := strings.Cut(strings.TrimSuffix(mem, ")"), " -> "); ok {
		out[1], out[2] = src, dst
	}
	return out
}
