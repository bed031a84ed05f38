package convert

import "tracelake/schema"

// addProcesses tells processes apart where GPU work names its own: by the key
// that is unique within a report, and not by the process ID.
func (m *model) addProcesses() {
	g, l, t := &m.trace.GPU, &m.trace.Launches, m.trace
	t.Processes = map[int64]int64{}
	note := func(r rows) []int64 {
		keys := r.Values("global_pid")
		last := schema.Null
		var pids []int64
		for i, k := range keys {
			if k == schema.Null || k == last {
				continue
			}
			last = k
			if _, ok := t.Processes[k]; !ok {
				if pids == nil {
					pids = r.Values("pid")
				}
				t.Processes[k] = pids[i]
			}
		}
		return keys
	}
	g.PID, l.PID = note(m.res.gpu), note(m.res.launches)
	l.KeyPID = l.PID
	note(m.res.ranges)
	if m.res.gpu.Has("graph_node_id") {
		g.GraphNode = m.res.gpu.Values("graph_node_id")
	}
	m.adoptWork()
	m.nameDevices()
}

// adoptWork gives GPU work that names no process to the only process that
// made calls, if there is one.
func (m *model) adoptWork() {
	g, only := &m.trace.GPU, schema.Null
	for _, p := range m.trace.Launches.PID {
		if p == schema.Null || p == only {
			continue
		}
		if only != schema.Null {
			return
		}
		only = p
	}
	if only == schema.Null {
		return
	}
	for i, p := range g.PID {
		if p == schema.Null {
			g.PID[i] = only
		}
	}
}

// nameDevices gives each event the name and UUID of its GPU.
func (m *model) nameDevices() {
	g := &m.trace.GPU
	type names struct{ uuid, name uint32 }
	known := map[deviceKey]names{}
	put := func(s schema.Opt[string]) uint32 {
		if !s.OK {
			return 0
		}
		g.Names = append(g.Names, s.V)
		return uint32(len(g.Names))
	}
	for _, d := range m.res.header.Devices {
		if d.UUID.OK || d.Name.OK {
			known[d.deviceKey] = names{put(d.UUID), put(d.Name)}
		}
	}
	if len(known) == 0 {
		return
	}
	n := g.Len()
	g.UUID, g.DeviceName = make([]uint32, n), make([]uint32, n)
	last, of := deviceKey{1, schema.Null}, names{}
	for i := range n {
		k := deviceKey{g.PID[i], g.Device[i]}
		if k != last {
			last, of = k, known[k]
		}
		g.UUID[i], g.DeviceName[i] = of.uuid, of.name
	}
}
