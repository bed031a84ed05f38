package convert

import (
	"time"

	"tracelake/schema"
	"tracelake/schema/lake"
)

// Report is what became of one input.
type Report struct {
	Path       string           `json:"path"`
	Unit       string           `json:"unit,omitempty"` // from List: what to convert for this input
	Kind       string           `json:"kind,omitempty"` // KindTables, or "" for a trace
	Outcome    string           `json:"outcome"`        // ok, repaired, partial, rejected
	Reason     string           `json:"reason,omitempty"`
	Skipped    string           `json:"skipped,omitempty"` // why nothing was read
	TraceID    string           `json:"trace_id,omitempty"`
	Run        string           `json:"run,omitempty"`
	Rank       *int64           `json:"rank"`
	RankSource string           `json:"rank_source,omitempty"`
	WorldSize  *int64           `json:"world_size"`
	Bytes      int64            `json:"bytes"`
	TextBytes  int64            `json:"json_bytes"`
	Events     int64            `json:"events"`
	GPUEvents  int64            `json:"gpu_events"`
	Linked     int64            `json:"linked_gpu_events"`
	Ambiguous  int64            `json:"ambiguous_gpu_events"`
	InIter     int64            `json:"iteration_gpu_events"`
	Iterations int64            `json:"iterations"`
	LostEvents int64            `json:"lost_events"`
	Repairs    int64            `json:"repairs"`
	Rows       map[string]int64 `json:"rows,omitempty"`
	Diags      []Diagnostic     `json:"diagnostics,omitempty"`
	Seconds    float64          `json:"seconds"`
	// Failed is set where the import failed for a reason that lies outside the
	// input: no space, no permission, an interruption.
	Failed string `json:"failed,omitempty"`

	source string // as in traces

	digest string // traces.content_digest, where no reader tells it
}

// KindTables is the value of Report.Kind for the tables of a job of collect.
const KindTables = "tables"

// Diagnostic is a diagnostic as reports print it.
type Diagnostic struct {
	Code       string `json:"code"`
	Severity   string `json:"severity"`
	ByteOffset *int64 `json:"byte_offset,omitempty"`
	EventIndex *int64 `json:"event_index,omitempty"`
	Count      int64  `json:"count"`
	Message    string `json:"message"`
}

func diagnostics(d *schema.Diagnostics) (out []Diagnostic) {
	for _, x := range d.List() {
		out = append(out, Diagnostic{
			Code: string(x.Code), Severity: x.Severity.String(), Count: x.Count, Message: x.Message,
			ByteOffset: ptr(x.Offset), EventIndex: ptr(x.EventIndex),
		})
	}
	return out
}

func ptr(v int64) *int64 {
	if v == schema.Null {
		return nil
	}
	return &v
}

func optPtr(v schema.Opt[int64]) *int64 {
	if !v.OK {
		return nil
	}
	return &v.V
}

// skip makes a report that of an input which the dataset holds already.
func (r *Report) skip(old *lake.Commit) {
	*r = Report{
		Path: r.Path, Unit: r.Unit, Kind: r.Kind, Bytes: r.Bytes, Run: old.Run, Rank: old.Rank, WorldSize: old.WorldSize,
		Outcome: old.Outcome, Reason: old.Reason, TraceID: old.TraceID, Skipped: AlreadyThere,
	}
}

// AlreadyThere is the value of Report.Skipped for an input that an earlier
// import took care of.
const AlreadyThere = "already in the dataset"

// Bad reports whether something of the input is missing. What an earlier
// import reported does not count again.
func (r *Report) Bad() bool {
	return r.Failed != "" || r.Skipped != AlreadyThere && (r.Outcome == "partial" || r.Outcome == "rejected")
}

// Summary adds up a whole conversion.
type Summary struct {
	Inputs     int           `json:"inputs"`
	Done       int           `json:"done"`
	Duplicates int           `json:"duplicates"` // done, with rows that were there already
	Skipped    int           `json:"skipped"`
	Failed     int           `json:"failed"`
	OK         int           `json:"ok"`
	Repaired   int           `json:"repaired"`
	Partial    int           `json:"partial"`
	Rejected   int           `json:"rejected"`
	Ignored    int           `json:"ignored"`    // files in directories that do not look like traces
	EmptyJobs  int           `json:"empty_jobs"` // jobs of collect without a trace or a table
	Superseded int           `json:"superseded"` // traces of earlier attempts of jobs, taken out
	Replaced   int           `json:"replaced"`   // traces of files that hold another one by now, taken out
	Events     int64         `json:"events"`
	GPUEvents  int64         `json:"gpu_events"`
	Linked     int64         `json:"linked_gpu_events"`
	InIter     int64         `json:"iteration_gpu_events"`
	Bytes      int64         `json:"bytes"`
	TextBytes  int64         `json:"json_bytes"`
	Elapsed    time.Duration `json:"elapsed_ns"`
	Notices    []string      `json:"notices"` // about the run as a whole

	Compacted *lake.Compacted `json:"compacted,omitempty"` // where Options.TargetFileSize asked for it
}

func (s *Summary) add(r *Report) { s.count(r, 1) }

// count adds a report n times; -1 takes it back.
func (s *Summary) count(r *Report, n int) {
	s.Inputs += n
	switch {
	case r.Failed != "":
		s.Failed += n
		return
	case r.Skipped == AlreadyThere:
		s.Skipped += n
		return
	case r.Skipped != "":
		s.Duplicates += n
	}
	s.Done += n
	switch r.Outcome {
	case "ok":
		s.OK += n
	case "repaired":
		s.Repaired += n
	case "partial":
		s.Partial += n
	case "rejected":
		s.Rejected += n
	}
	times := int64(n)
	s.Events += times * r.Events
	s.GPUEvents += times * r.GPUEvents
	s.Linked += times * r.Linked
	s.InIter += times * r.InIter
	s.Bytes += times * r.Bytes
	s.TextBytes += times * r.TextBytes
}

// Bad reports whether some input is missing or incomplete.
func (s *Summary) Bad() bool { return s.Failed+s.Partial+s.Rejected > 0 }
