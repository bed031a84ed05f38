package convert

import (
	"fmt"
	"sort"

	"tracelake/analyze/activity"
	"tracelake/analyze/execlog"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// writeActivities groups the GPU events and writes activities and devices.
func (c *importer) writeActivities(s *sink, m *model, links *link.Links, path string, byPID map[int64]map[int64]string) error {
	detail, err := activity.ParseDetail(c.o.Detail)
	if err != nil {
		return err
	}
	byLaunch := m.group(links, activity.Launch)
	uuids := c.uuidsOf(m, path, byPID)
	if err := c.writeDevices(s, m, byLaunch, uuids); err != nil {
		return err
	}
	if s.tables[schema.TableActivities.Name] == nil {
		return nil
	}
	groups := byLaunch
	if detail == activity.Kernel {
		groups = m.group(links, detail)
	}
	deviceUUIDs := m.uuidColumn(groups, uuids)
	m.freeGrouping()
	return (&retainedTable{
		t: &schema.TableActivities, order: identity(groups.Len()), extra: m.activityColumns(groups, links, deviceUUIDs),
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
func (m *model) activityColumns(g *activity.Groups, links *link.Links, uuids source) map[string]func() source {
	gpu, launches := m.res.gpu, m.res.launches
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
	// shared is a column of GPU events where all of a record have one value.
	shared := func(name string) func() source {
		return func() source {
			col := gpu.Values(name)
			return ints(func(i int) int64 { return g.Shared(col, i) })()
		}
	}
	texts := func(dict []string, value func(i int) int64) func() source {
		return func() source {
			src := ints(value)()
			src.dict = dict
			return src
		}
	}
	first := func(i int) int32 { return g.First[i] }
	// ofFirst and ofLaunch are columns of the first event and of its launch.
	ofFirst := func(name string) func() source {
		return func() source {
			col := gpu.Values(name)
			return ints(func(i int) int64 { return col[first(i)] })()
		}
	}
	ofLaunch := func(name string) func() source {
		return func() source {
			col := launches.Values(name)
			return ints(func(i int) int64 {
				if k := links.Launch[first(i)]; k >= 0 {
					return col[k]
				}
				return schema.Null
			})()
		}
	}
	cols := map[string]func() source{
		"activity_id": ints(func(i int) int64 { return int64(i) + 1 }),
		"detail":      texts([]string{g.Detail.String()}, func(int) int64 { return 0 }),
		"kind":        texts(kinds, func(i int) int64 { return int64(m.trace.GPU.Kind[first(i)]) }),
		"first_name": func() source {
			names := m.gpuNames()
			return texts(m.trace.GPU.Names, func(i int) int64 { return int64(names[first(i)]) })()
		},
		"event_count": ints(func(i int) int64 { return int64(len(g.Members(i))) }),
		"start_ns":    ints(func(i int) int64 { return g.Start[i] }),
		"end_ns":      ints(func(i int) int64 { return g.End[i] }),
		"busy_ns":     ints(func(i int) int64 { return g.Busy[i] }),
		"summed_ns":   ints(func(i int) int64 { return g.Summed[i] }),
		"device":      ofFirst("device"),
		"stream":      shared("stream"),
		"correlation": ofFirst("correlation"),
		"graph_id":    shared("graph_id"),
		"launch_id":   ofLaunch("event_index"),
		"launch_api": func() source {
			names := m.launchNames()
			return texts(m.trace.GPU.Names, func(i int) int64 {
				if k := links.Launch[first(i)]; k >= 0 {
					return int64(names[k])
				}
				return schema.Null
			})()
		},
		"pid": func() source {
			pids := m.launchPIDs()
			return ints(func(i int) int64 { return m.trace.ProcessID(m.processOf(links, pids, first(i))) })()
		},
		"device_uuid": func() source { return uuids },
		"intervals":   func() source { return source{lists: func(i int) []schema.Interval { return intervalsOf(g, i) }} },
		"unresolved_reason": func() source {
			out := make([]link.Reason, n)
			for i := range out {
				out[i] = links.Reason[first(i)]
			}
			return codes(out, reasons, true)
		},
	}
	if m.res.byProcess {
		cols["global_pid"] = ints(func(i int) int64 { return m.processOf(links, m.trace.Launches.PID, first(i)) })
	}
	iterationColumns(cols, n, func(i int) int32 { return links.Span(int(first(i))) }, iter)
	return cols
}

// processOf returns the key of the process that launched an event, else of the
// event itself. pids are those of the launches.
func (m *model) processOf(links *link.Links, pids []int64, event int32) int64 {
	if k := links.Launch[event]; k >= 0 {
		return pids[k]
	}
	if m.trace.GPU.PID != nil {
		return m.trace.GPU.PID[event]
	}
	return schema.Null
}

// deviceOf returns the key of the device of an event.
func (m *model) deviceOf(event int32) deviceKey {
	k := deviceKey{schema.Null, m.trace.GPU.Device[event]}
	if m.trace.GPU.PID != nil {
		k.process = m.trace.GPU.PID[event]
	}
	return k
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

func (m *model) uuidColumn(g *activity.Groups, uuids map[deviceKey]deviceUUID) source {
	if len(uuids) == 0 {
		return source{}
	}
	src := source{vals: make([]int64, g.Len())}
	ids := map[deviceKey]int64{}
	for i := range src.vals {
		src.vals[i] = schema.Null
		d := m.deviceOf(g.First[i])
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

// uuidsOf finds the UUIDs of the devices that events ran on: those that the
// user named first, then those of the header, then those of the process, which
// is the launching one where only one process launched.
func (c *importer) uuidsOf(m *model, path string, byPID map[int64]map[int64]string) map[deviceKey]deviceUUID {
	out := map[deviceKey]deviceUUID{}
	listed := map[deviceKey]string{}
	for _, d := range m.res.header.Devices {
		if d.UUID.OK {
			listed[d.deviceKey] = d.UUID.V
		}
	}
	only := m.onlyLauncher()
	var option map[int64]string
	if c.o.DeviceUUIDs != nil {
		option = c.o.DeviceUUIDs(path)
	}
	find := func(k deviceKey) {
		pid := k.process
		if pid == schema.Null {
			pid = only
		}
		if u, ok := byPID[m.trace.ProcessID(pid)][k.ordinal]; ok && pid != schema.Null && m.trace.ProcessID(pid) != 0 {
			out[k] = deviceUUID{u, "execution_log"}
		}
		if u, ok := listed[k]; ok {
			out[k] = deviceUUID{u, "trace"}
		}
		if u, ok := option[k.ordinal]; ok {
			out[k] = deviceUUID{u, "option"}
		}
	}
	last := deviceKey{1, schema.Null}
	for i := range m.trace.GPU.Len() {
		if k := m.deviceOf(int32(i)); k != last && k.ordinal != schema.Null {
			last = k
			if _, ok := out[k]; !ok {
				find(k)
			}
		}
	}
	for k := range listed {
		find(k)
	}
	return out
}

// byProcess returns the GPUs of processes by ordinal, and notes which processes
// the execution log does not tell.
func (c *importer) byProcess(m *model, links *link.Links) map[int64]map[int64]string {
	if c.o.Execution == nil {
		return c.o.UUIDsByPID
	}
	b := c.o.Execution.Bind(m.trace, links)
	if n := len(b.Unmatched) + len(b.Ambiguous); b.Status != execlog.Bound && n > 0 {
		m.res.diags.Add(schema.ExecutionLog, schema.Null, schema.Null, int64(n),
			fmt.Sprintf("%s: of %d processes %d are one worker of the execution log, %d could be several, %d are none",
				b.Status, n+len(b.Workers), len(b.Workers), len(b.Ambiguous), len(b.Unmatched)))
	}
	return b.UUIDs
}

// onlyLauncher returns the process that made calls, schema.Null where there is
// none or are several.
func (m *model) onlyLauncher() int64 {
	only := schema.Null
	for _, p := range m.launchPIDs() {
		if p == schema.Null || p == 0 || p == only {
			continue
		}
		if only != schema.Null {
			return schema.Null
		}
		only = p
	}
	return only
}

// writeDevices writes the devices that the header lists or that an event ran
// on.
func (c *importer) writeDevices(s *sink, m *model, g *activity.Groups, uuids map[deviceKey]deviceUUID) error {
	b := newBuilder(&schema.TableDevices)
	totals := g.DeviceTotals()
	sort.SliceStable(totals, func(i, j int) bool {
		a, b := totals[i].Device, totals[j].Device
		if a.OK != b.OK {
			return a.OK
		}
		if a.V != b.V {
			return a.V < b.V
		}
		return totals[i].PID.V < totals[j].PID.V
	})
	listed := map[deviceKey]bool{}
	header := m.res.header.Devices
	describe := func(k deviceKey) {
		for _, d := range header {
			if d.deviceKey == k && !listed[k] {
				listed[k] = true
				b.opt("name", d.Name)
				b.optInt("memory_bytes", d.Memory)
				b.optInt("sm_count", d.SMs)
				b.optInt("compute_major", d.Major)
				b.optInt("compute_minor", d.Minor)
				b.optInt("warp_size", d.WarpSize)
				b.optText("properties_json", d.Rest)
			}
		}
		if u, ok := uuids[k]; ok {
			b.text("uuid", u.uuid)
			b.text("uuid_source", u.source)
		}
		if k.process != schema.Null {
			b.int("pid", m.trace.ProcessID(k.process))
			b.int("global_pid", k.process)
		}
	}
	for _, t := range totals {
		b.row()
		k := deviceKey{schema.Null, schema.Null}
		if t.PID.OK {
			k.process = t.PID.V
		}
		if t.Device.OK {
			b.int("ordinal", t.Device.V)
			k.ordinal = t.Device.V
		}
		describe(k)
		b.int("gpu_events", t.Events)
		b.int("excluded_events", t.Excluded)
		b.int("busy_ns", t.BusyNS)
		b.int("launch_span_ns", t.SpanNS)
		b.int("summed_ns", t.SummedNS)
		b.optInt("first_ns", t.FirstNS)
		b.optInt("last_ns", t.LastNS)
	}
	for _, d := range header {
		if d.ordinal == schema.Null || listed[d.deviceKey] {
			continue
		}
		b.row()
		b.int("ordinal", d.ordinal)
		describe(d.deviceKey)
		for _, name := range []string{"gpu_events", "excluded_events", "busy_ns", "launch_span_ns", "summed_ns"} {
			b.int(name, 0)
		}
	}
	return s.built(b)
}
