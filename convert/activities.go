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
	b := newBuilder(&schema.TableActivities)
	for i := range groups.Len() {
		b.row()
		m.activityRow(b, groups, links, i, uuids)
		if b.n == c.o.RowGroup {
			if err := s.built(b); err != nil {
				return err
			}
		}
	}
	return s.built(b)
}

func (m *model) activityRow(b *builder, g *activity.Groups, links *link.Links, i int, uuids map[int64]deviceUUID) {
	e := &m.trace.GPU
	first := g.First[i]
	b.int("activity_id", int64(i)+1)
	b.text("detail", g.Detail.String())
	b.text("kind", e.Kind[first].String())
	b.text("first_name", e.Names[e.Name[first]])
	b.int("event_count", int64(len(g.Members(i))))
	b.int("start_ns", g.Start[i])
	b.int("end_ns", g.End[i])
	b.int("busy_ns", g.Busy[i])
	b.int("summed_ns", g.Summed[i])
	if v := g.Intervals(i); v != nil && g.Start[i] != schema.Null {
		list := make([]schema.Interval, len(v))
		for k, x := range v {
			list[k] = schema.Interval{OffsetNS: x.Start - g.Start[i], DurNS: x.End - x.Start}
		}
		b.list("intervals", list)
	}
	b.int("device", e.Device[first])
	if u, ok := uuids[e.Device[first]]; ok {
		b.text("device_uuid", u.uuid)
	}
	b.optInt("stream", g.Stream(i))
	b.int("correlation", e.Correlation[first])
	b.optInt("graph_id", g.Graph(i))
	if l := links.Launch[first]; l >= 0 {
		b.int("launch_id", m.trace.Launches.EventIndex[l])
		b.text("launch_api", m.trace.Launches.Names[m.trace.Launches.Name[l]])
		b.int("pid", m.trace.Launches.PID[l])
	}
	if sp := links.Span(int(first)); sp >= 0 {
		x := &m.trace.Spans[sp]
		b.text("iteration_producer", x.Ref.Producer)
		b.text("iteration_id", x.Ref.ID)
		b.int("iteration_range", x.EventIndex)
	}
	b.optText("unresolved_reason", links.Reason[first].String())
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
