package activity

import "tracelake/schema"

// validate refuses a record with values that the reference's record type
// refuses, in its order. Outside the compatibility mode a negative ID does not
// cost the whole trace: it is counted and left out.
func (r *Result) validate(i int) error {
	t, g := r.trace, r.Groups
	e, first := &t.GPU, g.First[i]
	pid := pidOf(e, first)
	if p := g.LaunchOf(i); p >= 0 {
		pid = t.Launches.PID[p]
	}
	pid = t.ProcessID(pid)
	uuid, uuidGiven := "", false
	if e.UUID == nil || e.UUID[first] == 0 {
		var source string
		uuid, source = r.uuids.find(pid, e.Device[first])
		uuidGiven = source != ""
	}
	for _, c := range []struct {
		name  string
		value string
		given bool
	}{
		{"run_id", r.opt.RunID, true},
		{"session_id", r.opt.SessionID, true},
		{"engine_version", t.EngineVersion.V, t.EngineVersion.OK},
		{"backend_version", t.CUPTIVersion.V, t.CUPTIVersion.OK},
		{"host", t.Host.V, t.Host.OK},
		{"device_uuid", uuid, uuidGiven},
	} {
		if _, odd := t.Odd[c.name]; odd || c.given && c.value == "" {
			return &InvalidError{c.name + " must be a non-empty string"}
		}
	}
	if err := notNegative("pid", schema.OptInt(pid)); err != nil {
		return err
	}
	if err := r.validateRanks(); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		v    schema.Opt[int64]
	}{
		{"cuda_correlation_id", schema.OptInt(e.Correlation[first])},
		{"stream_id", g.Stream(i)},
		{"graph_id", g.Graph(i)},
		{"start_ns", schema.OptInt(g.Start[i])},
		{"end_ns", schema.OptInt(g.End[i])},
	} {
		err := notNegative(c.name, c.v)
		if id := c.name != "start_ns" && c.name != "end_ns"; err != nil && id && !r.opt.Compat {
			r.dropped++ // see Record
			continue
		}
		if err != nil {
			return err
		}
	}
	if g.End[i] < g.Start[i] {
		return &InvalidError{"end_ns must be >= start_ns"}
	}
	return nil
}

func (r *Result) validateRanks() error {
	t := r.trace
	for _, c := range []struct {
		name string
		v    schema.Opt[int64]
	}{{"rank", t.Rank}, {"world_size", t.WorldSize}} {
		if odd, ok := t.Odd[c.name]; ok && odd.JSON[0] == '-' {
			c.v = schema.Some[int64](-1)
		}
		if err := notNegative(c.name, c.v); err != nil {
			return err
		}
	}
	if t.WorldSize == schema.Some[int64](0) {
		return &InvalidError{"world_size must be >= 1"}
	}
	return nil
}

func notNegative(name string, v schema.Opt[int64]) error {
	if v.OK && v.V < 0 {
		return &InvalidError{name + " must be a non-negative integer or null"}
	}
	return nil
}
