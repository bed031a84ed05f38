package convert

import (
	"sort"

	"tracelake/analyze/activity"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// writeActivities groups the GPU events and writes activities and devices.
func (c *importer) writeActivities(s *sink, m *model, links *link.Links, path string) error {
	detail, err := activity.ParseDetail(c.o.Detail)
	if err != nil {
		return err
	}
	byLaunch := activity.Group(m.trace, links, activity.Launch)
	uuids := c.uuidsOf(m, path)
	if err := c.writeDevices(s, m, byLaunch, uuids); err != nil {
		return err
	}
	if s.tables[schema.TableActivities.Name] == nil {
		return nil
	}
	groups := byLaunch
	if detail == activity.Kernel {
		groups = activity.Group(m.trace, links, detail)
	}
	return (&retainedTable{
		t: &schema.TableActivities, order: identity(groups.Len()), extra: m.activityColumns(groups, links, uuids),
	}).write(s, c.o.RowGroup)
}

// identity returns 0, 1, 2, … n-1.
func identity(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// activityColumns are the columns of activities.
func (m *model) activityColumns(g *activity.Groups, links *link.Links, uuids map[int64]deviceUUID) map[string]func() source {
	e, l := &m.trace.GPU, &m.trace.Launches
	n := g.Len()
	iter := newIterationDict(m.trace.Spans)
	ints := func(value func(i int) int64) func() source {
		return func() source {
			out := make([]int64, n)
			for i := range out {
				out[i] = value(i)
			}
			return source{vals: out}
		}
	}
	opt := func(value func(i int) schema.Opt[int64]) func() source {
		return ints(func(i int) int64 {
			if v := value(i); v.OK {
				return v.V
			}
			return schema.Null
		})
	}
	texts := func(dict []string, value func(i int) int64) func() source {
		return func() source {
			src := ints(value)()
			src.dict = dict
			return src
		}
	}
	first := func(i int) int32 { return g.First[i] }
	launch := func(of func(l int32) int64) func(i int) int64 {
		return func(i int) int64 {
			if k := links.Launch[first(i)]; k >= 0 {
				return of(k)
			}
			return schema.Null
		}
	}
	cols := map[string]func() source{
		"activity_id": ints(func(i int) int64 { return int64(i) + 1 }),
		"detail":      texts([]string{g.Detail.String()}, func(int) int64 { return 0 }),
		"kind":        texts(kinds, func(i int) int64 { return int64(e.Kind[first(i)]) }),
		"first_name":  texts(e.Names, func(i int) int64 { return int64(e.Name[first(i)]) }),
		"event_count": ints(func(i int) int64 { return int64(len(g.Members(i))) }),
		"start_ns":    ints(func(i int) int64 { return g.Start[i] }),
		"end_ns":      ints(func(i int) int64 { return g.End[i] }),
		"busy_ns":     ints(func(i int) int64 { return g.Busy[i] }),
		"summed_ns":   ints(func(i int) int64 { return g.Summed[i] }),
		"device":      ints(func(i int) int64 { return e.Device[first(i)] }),
		"stream":      opt(g.Stream),
		"correlation": ints(func(i int) int64 { return e.Correlation[first(i)] }),
		"graph_id":    opt(g.Graph),
		"launch_id":   ints(launch(func(k int32) int64 { return l.EventIndex[k] })),
		"launch_api":  texts(l.Names, launch(func(k int32) int64 { return int64(l.Name[k]) })),
		"pid":         ints(launch(func(k int32) int64 { return l.PID[k] })),
		"device_uuid": func() source { return m.uuidColumn(g, uuids) },
		"intervals":   func() source { return source{lists: func(i int) []schema.Interval { return intervalsOf(g, i) }} },
		"unresolved_reason": func() source {
			out := make([]link.Reason, n)
			for i := range out {
				out[i] = links.Reason[first(i)]
			}
			return codes(out, reasons, true)
		},
	}
	iterationColumns(cols, n, func(i int) int32 { return links.Span(int(first(i))) }, iter)
	return cols
}

// intervalsOf returns the busy intervals of a record, nil where it has none of
// its own.
func intervalsOf(g *activity.Groups, i int) []schema.Interval {
	v := g.Intervals(i)
	if v == nil || g.Start[i] == schema.Null {
		return nil
	}
	out := make([]schema.Interval, len(v))
	for k, x := range v {
		out[k] = schema.Interval{OffsetNS: x.Start - g.Start[i], DurNS: x.End - x.Start}
	}
	return out
}

func (m *model) uuidColumn(g *activity.Groups, uuids map[int64]deviceUUID) source {
	src := source{vals: make([]int64, g.Len())}
	ids := map[int64]int64{}
	for i := range src.vals {
		src.vals[i] = schema.Null
		d := m.trace.GPU.Device[g.First[i]]
		u, ok := uuids[d]
		if !ok {
			continue
		}
		if _, ok := ids[d]; !ok {
			ids[d] = int64(len(src.dict))
			src.dict = append(src.dict, u.uuid)
		}
		src.vals[i] = ids[d]
	}
	return src
}

// deviceUUID is a UUID and where it comes from.
type deviceUUID struct{ uuid, source string }

// uuidsOf finds the UUIDs of the devices of a trace: those that the user named
// first, then those of the header, then those of the launching process where
// only one process launched.
func (c *importer) uuidsOf(m *model, path string) map[int64]deviceUUID {
	out := map[int64]deviceUUID{}
	if len(c.o.UUIDsByPID) > 0 {
		pids := map[int64]bool{}
		for _, p := range m.trace.Launches.PID {
			if p != schema.Null && p != 0 {
				pids[p] = true
			}
		}
		if len(pids) == 1 {
			for p := range pids {
				for d, u := range c.o.UUIDsByPID[p] {
					out[d] = deviceUUID{u, "execution_log"}
				}
			}
		}
	}
	for _, d := range m.res.Header.Devices {
		if d.Ordinal.OK && d.UUID.OK {
			out[d.Ordinal.V] = deviceUUID{d.UUID.V, "trace"}
		}
	}
	if c.o.DeviceUUIDs != nil {
		for d, u := range c.o.DeviceUUIDs(path) {
			out[d] = deviceUUID{u, "option"}
		}
	}
	return out
}

// writeDevices writes the devices that the header lists or that an event ran
// on.
func (c *importer) writeDevices(s *sink, m *model, g *activity.Groups, uuids map[int64]deviceUUID) error {
	b := newBuilder(&schema.TableDevices)
	totals := g.DeviceTotals()
	sort.SliceStable(totals, func(i, j int) bool {
		a, b := totals[i].Device, totals[j].Device
		if a.OK != b.OK {
			return a.OK
		}
		return a.V < b.V
	})
	listed := map[int64]bool{}
	header := m.res.Header.Devices
	describe := func(ordinal int64) {
		for _, d := range header {
			if d.Ordinal.OK && d.Ordinal.V == ordinal && !listed[ordinal] {
				listed[ordinal] = true
				b.opt("name", d.Name)
				b.optInt("memory_bytes", d.Memory)
				b.optInt("sm_count", d.SMs)
				b.optInt("compute_major", d.Major)
				b.optInt("compute_minor", d.Minor)
				b.optInt("warp_size", d.WarpSize)
				b.optText("properties_json", d.Rest)
			}
		}
		if u, ok := uuids[ordinal]; ok {
			b.text("uuid", u.uuid)
			b.text("uuid_source", u.source)
		}
	}
	for _, t := range totals {
		b.row()
		if t.Device.OK {
			b.int("ordinal", t.Device.V)
			describe(t.Device.V)
		}
		b.int("gpu_events", t.Events)
		b.int("excluded_events", t.Excluded)
		b.int("busy_ns", t.BusyNS)
		b.int("launch_span_ns", t.SpanNS)
		b.int("summed_ns", t.SummedNS)
		b.optInt("first_ns", t.FirstNS)
		b.optInt("last_ns", t.LastNS)
	}
	for _, d := range header {
		if !d.Ordinal.OK || listed[d.Ordinal.V] {
			continue
		}
		b.row()
		b.int("ordinal", d.Ordinal.V)
		describe(d.Ordinal.V)
		for _, name := range []string{"gpu_events", "excluded_events", "busy_ns", "launch_span_ns", "summed_ns"} {
			b.int(name, 0)
		}
	}
	return s.built(b)
}
