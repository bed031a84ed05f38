package convert

import (
	"context"
	"errors"
	"sort"
	"time"

	"tracelake/analyze/activity"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// Inspection is what Inspect found out about a trace.
type Inspection struct {
	Report
	Header     HeaderInfo   `json:"header"`
	Clock      string       `json:"clock"`
	BaseNS     *int64       `json:"base_ns"`
	StartNS    *int64       `json:"start_ns"`
	EndNS      *int64       `json:"end_ns"`
	Kinds      []KindCount  `json:"kinds"`
	Devices    []DeviceInfo `json:"devices"`
	Producer   string       `json:"iteration_producer,omitempty"`
	Unresolved ReasonCounts `json:"unresolved"`
}

// HeaderInfo are the header keys that people ask for.
type HeaderInfo struct {
	Host        string   `json:"host,omitempty"`
	TraceID     string   `json:"trace_id,omitempty"`
	VLLMVersion string   `json:"vllm_version,omitempty"`
	CUPTI       string   `json:"cupti_version,omitempty"`
	CUDARuntime string   `json:"cuda_runtime_version,omitempty"`
	CUDADriver  string   `json:"cuda_driver_version,omitempty"`
	HIPRuntime  string   `json:"hip_runtime_version,omitempty"`
	Backend     string   `json:"distributed_backend,omitempty"`
	TraceName   string   `json:"trace_name,omitempty"`
	GPUs        []string `json:"gpus"`
}

// KindCount is how many events a phase and category have.
type KindCount struct {
	Phase    string `json:"phase"`
	Category string `json:"category"`
	Events   int64  `json:"events"`
}

// DeviceInfo is what a device did.
type DeviceInfo struct {
	Ordinal  *int64 `json:"ordinal"`
	Events   int64  `json:"gpu_events"`
	Excluded int64  `json:"excluded_events"`
	BusyNS   int64  `json:"busy_ns"`
	SpanNS   int64  `json:"launch_span_ns"`
	SummedNS int64  `json:"summed_ns"`
	FirstNS  *int64 `json:"first_ns"`
	LastNS   *int64 `json:"last_ns"`
}

// ReasonCounts counts GPU events without an iteration by reason.
type ReasonCounts struct {
	NoLaunch     int64 `json:"no_launch_record"`
	Outside      int64 `json:"launch_outside_iteration_range"`
	Ambiguous    int64 `json:"ambiguous_iteration_range"`
	AmbiguousPID int64 `json:"ambiguous_launch"`
}

// Inspect is InspectInput of a local file or directory.
func Inspect(ctx context.Context, path string, o Options) (*Inspection, error) {
	return InspectInput(ctx, Input{Path: path}, o)
}

// InspectInput reads a trace and writes nothing. A trace that is none gives an
// Inspection with outcome rejected, and no error.
func InspectInput(ctx context.Context, in Input, o Options) (*Inspection, error) {
	started := time.Now()
	out := &Inspection{Report: Report{Path: in.Path}}
	if err := o.fill(); err != nil {
		return nil, err
	}
	c := &importer{o: o}
	file, src, cleanup, err := c.open(in)
	defer cleanup()
	if err != nil {
		return nil, err
	}
	out.Bytes = src.Bytes
	from, done, err := c.readerOf(ctx, in, file)
	defer done()
	if err != nil {
		return nil, err
	}
	res, err := readAll(ctx, from, reading{o: &o, size: src.Bytes})
	var rejected *schema.RejectedError
	if errors.As(err, &rejected) {
		out.Outcome, out.Reason = "rejected", rejected.Error()
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	m := newModel(res, &o.Marks)
	links := link.Resolve(m.trace, link.Careful)
	c.judge(in, m, links)
	outcome, reason := res.diags.Outcome()
	if o.Strict && outcome != "ok" {
		outcome, reason = "rejected", "not ok in strict mode: "+reason
	}
	out.fill(m, links, res.digest[:schema.TraceIDLen], c.rankOf(in.Path, res), outcome, reason)
	out.Rows = res.rows
	out.describe(m, links)
	out.Seconds = time.Since(started).Seconds()
	return out, nil
}

func (x *Inspection) describe(m *model, links *link.Links) {
	res, h := m.res, &m.res.header
	x.Header = HeaderInfo{
		Host: h.Host.V, TraceID: h.TraceID.V, VLLMVersion: h.VLLMVersion.V, CUPTI: h.CUPTIVersion.V,
		CUDARuntime: h.CUDARuntime.V, CUDADriver: h.CUDADriver.V, HIPRuntime: h.HIPRuntime.V, Backend: h.Backend.V, TraceName: h.TraceName.V,
	}
	for _, d := range h.Devices {
		x.Header.GPUs = append(x.Header.GPUs, d.Name.V)
	}
	x.Clock = clockOf(res)
	x.BaseNS = optPtr(h.Base)
	if res.first != schema.Null {
		a, b := addBase(res.first, res.base), addBase(res.last, res.base)
		x.StartNS, x.EndNS = &a, &b
	}
	x.Kinds = append(x.Kinds, res.kinds...)
	sort.Slice(x.Kinds, func(i, j int) bool {
		a, b := x.Kinds[i], x.Kinds[j]
		if a.Events != b.Events {
			return a.Events > b.Events
		}
		return a.Phase+" "+a.Category < b.Phase+" "+b.Category
	})
	for _, t := range activity.Group(m.trace, links, activity.Launch).DeviceTotals() {
		x.Devices = append(x.Devices, DeviceInfo{
			Ordinal: optPtr(t.Device), Events: t.Events, Excluded: t.Excluded, BusyNS: t.BusyNS, SpanNS: t.SpanNS,
			SummedNS: t.SummedNS, FirstNS: optPtr(t.FirstNS), LastNS: optPtr(t.LastNS),
		})
	}
	x.Producer = m.marks.producer
	for _, r := range links.Reason {
		switch r {
		case link.NoLaunch:
			x.Unresolved.NoLaunch++
		case link.OutsideIteration:
			x.Unresolved.Outside++
		case link.AmbiguousRange:
			x.Unresolved.Ambiguous++
		case link.AmbiguousLaunch:
			x.Unresolved.AmbiguousPID++
		}
	}
}

// clockOf says what times count from.
func clockOf(res *loaded) string {
	if res.header.Base.OK && res.header.Base.V != 0 || res.absolute {
		return "epoch"
	}
	return "relative"
}
