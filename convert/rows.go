package convert

import (
	"math"

	"tracelake/analyze/link"
	"tracelake/kineto"
	"tracelake/schema"
	"tracelake/schema/lake"
)

// judge notes what linking found.
func (c *importer) judge(in Input, m *model, l *link.Links) {
	d, n := m.res.diags, &l.Counts
	add := func(code schema.Code, count int64, message string) {
		d.Add(code, schema.Null, schema.Null, count, message)
	}
	add(schema.NoCorrelation, n.NoCorrelation-n.ByExternalID, "GPU events without a correlation ID")
	add(schema.NoLaunch, n.NoLaunch, "GPU events whose correlation ID no call has")
	add(schema.AmbiguousLaunch, n.AmbiguousLaunch, "GPU events whose correlation ID several processes used")
	add(schema.ExternalIDLink, n.ByExternalID, "GPU events linked by External id")
	add(schema.DuplicateLaunch, n.Superseded, "calls that a later call of the same process and correlation ID replaces")
	if !m.res.header.Base.OK && !m.res.absolute && m.res.first != schema.Null {
		add(schema.NoBase, 1, "nothing says when the trace began, and times are relative")
	}
	if m.res.durations == 0 {
		add(schema.NoEvents, 1, "no duration events")
	}
	pids := map[int64]bool{}
	for i, p := range m.trace.Launches.PID {
		if p != schema.Null && m.trace.Launches.Correlation[i] != schema.Null && len(pids) < 1000 {
			pids[p] = true
		}
	}
	if len(pids) > 1 && m.trace.GPU.Len() > 0 && !m.res.byProcess {
		add(schema.SeveralProcs, int64(len(pids)), "processes launched GPU work in one trace: a merged file, or a process with children")
	}
	if name := kineto.RankInName(in.Path); name.OK && m.res.header.Rank.OK && name.V != m.res.header.Rank.V {
		add(schema.RankConflict, 1, "the file name and the content state different ranks; the content counts")
	}
}

func (r *Report) fill(m *model, l *link.Links, id string, rank rankInfo, outcome, reason string) {
	d := m.res.diags
	r.TraceID, r.Outcome, r.Reason = id, outcome, reason
	r.Rank, r.RankSource = optPtr(rank.value), rank.source
	r.WorldSize = optPtr(m.res.header.WorldSize)
	r.TextBytes, r.Events, r.GPUEvents = m.res.textBytes, m.res.events, int64(m.trace.GPU.Len())
	r.Linked, r.Ambiguous, r.InIter = l.Counts.Launched, l.Counts.AmbiguousLaunch, l.Counts.InIteration
	r.Iterations = m.marks.distinct
	r.LostEvents, r.Repairs = d.Count(schema.BrokenEvent), d.CountSeverity(schema.Repair)
	r.Diags = diagnostics(d)
}

// writeTraces writes the row of a trace; m is nil for an input without rows.
func (c *importer) writeTraces(s *sink, m *model, in Input, src lake.Source, r *Report, rank rankInfo, duplicateOf string) error {
	b := newBuilder(&schema.TableTraces)
	b.row()
	b.text("outcome", r.Outcome)
	b.optText("outcome_reason", r.Reason)
	b.optText("duplicate_of", duplicateOf)
	b.text("run", r.Run)
	b.text("source", r.source)
	b.text("path", in.Path)
	if n := src.Bytes; n >= 0 {
		b.int("source_bytes", n)
	}
	b.optInt("rank", rank.value)
	b.optText("rank_source", rank.source)
	b.optInt("rank_in_name", rank.inName)
	if m != nil {
		c.traceColumns(b, m, r)
	} else {
		b.text("content_digest", r.digest)
		b.text("clock", "relative")
		for _, n := range []string{"events", "gpu_events", "launches", "ranges", "cpu_events"} {
			b.int(n, 0)
		}
	}
	b.int("linked_gpu_events", r.Linked)
	b.int("ambiguous_gpu_events", r.Ambiguous)
	b.int("iteration_gpu_events", r.InIter)
	b.int("iterations", r.Iterations)
	b.int("lost_events", r.LostEvents)
	b.int("repairs", r.Repairs)
	jobColumns(b, in.Job)
	b.text("importer_version", c.o.Writer)
	b.int("schema_version", schema.Version)
	return s.built(b)
}

func (c *importer) traceColumns(b *builder, m *model, r *Report) {
	res, h := m.res, &m.res.header
	b.int("json_bytes", res.textBytes)
	b.text("content_digest", res.digest)
	b.opt("host", h.Host)
	b.optInt("world_size", h.WorldSize)
	b.text("clock", clockOf(res))
	b.optInt("base_ns", h.Base)
	if res.first != schema.Null {
		b.int("start_ns", addBase(res.first, res.base))
		b.int("end_ns", addBase(res.last, res.base))
		if res.fine {
			b.int("resolution_ns", 1)
		} else {
			b.int("resolution_ns", 1000)
		}
	}
	b.opt("trace_uuid", h.TraceID)
	if h.VLLMVersion.OK {
		b.text("engine", "vllm")
	}
	b.opt("engine_version", h.VLLMVersion)
	b.opt("cupti_version", h.CUPTIVersion)
	b.opt("cuda_runtime_version", h.CUDARuntime)
	b.opt("cuda_driver_version", h.CUDADriver)
	b.opt("hip_runtime_version", h.HIPRuntime)
	b.opt("distributed_backend", h.Backend)
	b.opt("process_groups_json", h.ProcessGroups)
	b.optText("header_json", h.Rest)
	b.int("events", res.events)
	for _, t := range []string{"gpu_events", "launches", "ranges", "cpu_events"} {
		b.int(t, res.rows[t])
	}
	b.optText("iteration_producer", m.marks.producer)
}

func addBase(v, base int64) int64 {
	s := v + base
	switch {
	case base > 0 && s < v:
		return math.MaxInt64
	case base < 0 && s > v:
		return math.MinInt64 + 1
	}
	return s
}

func writeDiagnostics(s *sink, d *schema.Diagnostics) error {
	b := newBuilder(&schema.TableDiagnostics)
	for _, x := range d.List() {
		b.row()
		b.text("code", string(x.Code))
		b.text("severity", x.Severity.String())
		b.int("byte_offset", x.Offset)
		b.int("event_index", x.EventIndex)
		b.int("count", x.Count)
		b.text("message", x.Message)
	}
	return s.built(b)
}
