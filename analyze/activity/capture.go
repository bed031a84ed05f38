package activity

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"tracelake/analyze/execlog"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// Capabilities are the kinds of evidence that an import can have.
type Capabilities struct {
	Supported []string `json:"supported"`
	Enabled   []string `json:"enabled"`
	Collected []string `json:"collected"`
}

// Result is the outcome of a capture. Records are made one at a time from the
// columns of the trace.
type Result struct {
	Groups       *Groups
	Links        *link.Links
	Capabilities Capabilities
	Summary      Summary
	Binding      *execlog.Binding // where there was an execution log

	trace *schema.Trace
	opt   Options
	key   string // what record IDs and the clock domain are named after
	uuids uuids

	dropped int64 // negative IDs left out of records
}

// Capture returns the records, capabilities and summary of a trace that was
// read from path. It fails with a UsageError when an option cannot be used and
// with an InvalidError when a record would hold a value that it cannot.
func Capture(t *schema.Trace, path string, o Options) (*Result, error) {
	detail, err := ParseDetail(cmp.Or(o.Detail, "launch"))
	if err != nil {
		return nil, err
	}
	if err := checkUUIDs(t, o.DeviceUUIDs); err != nil {
		return nil, err
	}
	how := link.Careful
	if o.Compat {
		how = link.Options{}
	}
	r := &Result{Links: link.Resolve(t, how), trace: t, opt: o, key: traceKey(t, path, o.AttachmentID)}
	r.Groups = Group(t, r.Links, detail)
	if o.ExecutionLog != nil {
		r.Binding = o.ExecutionLog.Bind(t, r.Links)
		o.DeviceUUIDsByPID = r.Binding.UUIDs
	}
	r.uuids = uuids{o.DeviceUUIDs, o.DeviceUUIDsByPID, processes(t, r.Links)}
	for i := range r.Groups.Len() {
		if err := r.validate(i); err != nil {
			return nil, err
		}
	}
	r.Capabilities = capabilities(t)
	r.Summary = r.summary(path)
	r.Summary.ExecutionLog = r.Binding
	if r.dropped > 0 {
		r.Summary.Notes = append(r.Summary.Notes, fmt.Sprintf("%d negative correlation, stream or graph IDs were left out of records", r.dropped))
	}
	return r, nil
}

// traceKey returns the attachment, else the ID of the trace, else the name of
// the file.
func traceKey(t *schema.Trace, path, attachment string) string {
	if attachment != "" {
		return attachment
	}
	if odd, ok := t.Odd["trace_id"]; ok && odd.Truth {
		return odd.Text
	}
	return cmp.Or(t.TraceID.V, filepath.Base(path))
}

// processes returns the distinct processes of the launch calls that can have
// links, sorted.
func processes(t *schema.Trace, links *link.Links) []int64 {
	l := &t.Launches
	seen := map[int64]bool{}
	out := []int64{}
	for i, pid := range l.PID {
		if pid == schema.Null || links.Superseded[i] || l.Correlation[i] == schema.Null || seen[pid] {
			continue
		}
		seen[pid] = true
		if pid = t.ProcessID(pid); pid != schema.Null { // else its name is text
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func capabilities(t *schema.Trace) Capabilities {
	known := func(v int64) bool { return v != schema.Null }
	names := []string{"gpu_activity", "cuda_correlation", "iteration_ranges", "cuda_graph_ids", "streams"}
	evidence := []bool{
		t.GPU.Len() > 0,
		slices.ContainsFunc(t.GPU.Correlation, known),
		len(t.Spans) > 0,
		slices.ContainsFunc(t.GPU.Graph, known),
		slices.ContainsFunc(t.GPU.Stream, known),
	}
	c := Capabilities{Supported: names, Enabled: names, Collected: []string{}}
	for i, name := range names {
		if evidence[i] {
			c.Collected = append(c.Collected, name)
		}
	}
	return c
}
