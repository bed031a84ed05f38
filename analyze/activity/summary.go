package activity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"tracelake/analyze/execlog"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// Summary is what a capture says about a whole trace. Its JSON form has the
// keys of the reference.
type Summary struct {
	Format            string                   `json:"format"`
	Detail            string                   `json:"detail"`
	Path              Text                     `json:"path"` // absolute, links resolved
	TraceID           json.RawMessage          `json:"trace_id"`
	Host              json.RawMessage          `json:"host"`
	Rank              json.RawMessage          `json:"rank"`
	Processes         []int64                  `json:"processes"` // launching processes, sorted
	EngineVersion     json.RawMessage          `json:"engine_version"`
	CUPTIVersion      json.RawMessage          `json:"cupti_version"`
	GPUEvents         int64                    `json:"gpu_events"`
	ActivityRecords   int64                    `json:"activity_records"`
	LinkedGPUEvents   int64                    `json:"linked_gpu_events"`
	Unresolved        map[string]int64         `json:"unresolved_gpu_events"` // events by reason
	GraphGPUEvents    int64                    `json:"graph_gpu_events"`
	ExcludedGPUEvents int64                    `json:"excluded_gpu_events,omitempty"`
	Devices           map[string]DeviceSummary `json:"devices"` // by [PID/]ORDINAL
	EventLoss         *int64                   `json:"event_loss"`
	EventLossNote     string                   `json:"event_loss_note"`
	NotImported       map[string]int64         `json:"not_imported"`
	Notes             []string                 `json:"notes"`
	ExecutionLog      *execlog.Binding         `json:"execution_log,omitempty"`
}

// DeviceSummary is what a summary says about one device. Times are in ns.
type DeviceSummary struct {
	Name         *Text   `json:"name"`
	UUID         *Text   `json:"device_uuid"`
	UUIDSource   *string `json:"device_uuid_source"` // trace, option or execution_log
	BusyNS       int64   `json:"busy_ns"`
	LaunchSpanNS int64   `json:"launch_span_ns"`
	SummedNS     int64   `json:"summed_ns"`
	Excluded     int64   `json:"excluded_events,omitempty"`

	PID, Ordinal schema.Opt[int64] `json:"-"`
}

// Text is a string whose JSON form keeps surrogates without a partner.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) { return appendText(nil, string(t)), nil }

func (r *Result) summary(path string) Summary {
	t := r.trace
	s := Summary{
		Format: t.Source, Detail: r.Groups.Detail.String(), Path: Text(resolve(path)),
		TraceID: r.header("trace_id", t.TraceID), Host: r.header("host", t.Host),
		Rank: r.appendHeader(nil, "rank", t.Rank), Processes: r.uuids.processes,
		EngineVersion: r.header("engine_version", t.EngineVersion), CUPTIVersion: r.header("", t.CUPTIVersion),
		GPUEvents: int64(t.GPU.Len()), ActivityRecords: int64(r.Len()),
		Unresolved: map[string]int64{}, GraphGPUEvents: r.graphEvents(), Devices: map[string]DeviceSummary{},
		EventLossNote: "the trace does not report dropped CUPTI records",
		NotImported:   map[string]int64{}, Notes: append([]string{}, t.Notes...),
	}
	for _, reason := range r.Links.Reason {
		if reason == link.Linked {
			s.LinkedGPUEvents++
		} else {
			s.Unresolved[reason.String()]++
		}
	}
	for k, v := range t.NotImported {
		s.NotImported[k] = v
	}
	for _, d := range r.Groups.DeviceTotals() {
		s.Devices[r.deviceKey(&d)] = r.device(&d)
		s.ExcludedGPUEvents += d.Excluded
	}
	return s
}

// header returns a text of the header as JSON, or what stands there instead.
func (r *Result) header(key string, v schema.Opt[string]) json.RawMessage {
	if odd, ok := r.trace.Odd[key]; ok {
		if !json.Valid([]byte(odd.JSON)) {
			return appendText(nil, odd.Text) // NaN and the infinities
		}
		return json.RawMessage(odd.JSON)
	}
	if !v.OK {
		return json.RawMessage("null")
	}
	return appendText(nil, v.V)
}

func (r *Result) deviceKey(d *DeviceTotal) string {
	key := "None"
	if d.Device.OK {
		key = number(r.trace, d.Device.V, "")
	}
	if d.PID.OK {
		key = number(r.trace, r.trace.ProcessID(d.PID.V), "") + "/" + key
	}
	return key
}

func (r *Result) device(d *DeviceTotal) DeviceSummary {
	t := r.trace
	e := &t.GPU
	out := DeviceSummary{
		BusyNS: d.BusyNS, LaunchSpanNS: d.SpanNS, SummedNS: d.SummedNS, Excluded: d.Excluded,
		PID: d.PID, Ordinal: d.Device,
	}
	if name := textAt(e.DeviceName, e.Names, d.FirstEvent); name != "" {
		out.Name = ptr(Text(name))
	} else if name, ok := t.DeviceNames[d.Device.V]; ok && d.Device.OK {
		out.Name = ptr(Text(name))
	}
	uuid, source := textAt(e.UUID, e.Names, d.FirstEvent), fromTrace
	if uuid == "" {
		uuid, source = r.uuids.find(t.ProcessID(pidOf(e, d.FirstEvent)), e.Device[d.FirstEvent])
	}
	if source != "" {
		out.UUID, out.UUIDSource = ptr(Text(uuid)), &source
	}
	return out
}

// graphEvents counts the events of CUDA graphs: the event says so, or the call
// that launched it does.
func (r *Result) graphEvents() (n int64) {
	e, l := &r.trace.GPU, &r.trace.Launches
	graphLaunch := make([]bool, len(l.Names))
	for i, name := range l.Names {
		graphLaunch[i] = strings.HasPrefix(name, "cudaGraphLaunch") || strings.HasPrefix(name, "cuGraphLaunch")
	}
	// The reference looks up events without a correlation ID under the ID 0,
	// which a call has whose ID is a fraction below 1.
	zero := map[int64]int32{}
	for p, c := range l.Correlation {
		if r.opt.Compat && c == 0 {
			zero[l.Key(p)] = int32(p)
		}
	}
	for i := range e.Len() {
		p := r.Links.Launch[i]
		if q, ok := zero[pidOf(e, int32(i))]; ok && e.Correlation[i] == schema.Null {
			p = q
		}
		if e.Graph[i] != schema.Null || e.GraphNode != nil && e.GraphNode[i] != schema.Null ||
			p >= 0 && graphLaunch[l.Name[p]] {
			n++
		}
	}
	return n
}

func ptr[T any](v T) *T { return &v }

// resolve returns the absolute path with links resolved as far as it exists.
func resolve(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	dir, base := filepath.Split(abs)
	if dir = filepath.Clean(dir); dir == abs {
		return abs
	}
	if _, err := os.Lstat(abs); err == nil {
		return abs // a link that leads nowhere or round in a circle
	}
	return filepath.Join(resolve(dir), base)
}
