package server

// Outcomes of a start.
const (
	Acknowledged = "acknowledged" // the server answered that it profiles
	Rejected     = "rejected"     // the call did not reach the profiler
	Unknown      = "unknown"      // the profiler may have started
)

// Reasons of a stop.
const (
	PhaseEnd        = "phase_end"
	TimeBound       = "time_bound"
	Cancelled       = "cancelled"
	StartUnknown    = "start_unknown"
	StoppedByServer = "stopped_by_server" // a trace was there before the stop
)

// Record is what became of a window. Times are ns since the Unix epoch.
type Record struct {
	SchemaVersion     int      `json:"schema_version"`
	RecordType        string   `json:"record_type"` // trace_window
	ControlURL        string   `json:"control_url"` // without credentials
	RequestedAtNS     int64    `json:"requested_at_ns"`
	Started           bool     `json:"started"`
	StartedAtNS       *int64   `json:"started_at_ns"`
	StartOutcome      string   `json:"start_outcome"`
	StartRequestedNS  int64    `json:"start_requested_at_ns"`
	StartReturnedNS   int64    `json:"start_returned_at_ns"`
	StartStatus       *int     `json:"start_status"` // null where there was no answer
	StartError        *string  `json:"start_error"`
	StopStatus        *int     `json:"stop_status"`
	StopError         *string  `json:"stop_error"`
	StopReason        *string  `json:"stop_reason"` // null where nothing had to be stopped
	StoppedAtNS       *int64   `json:"stopped_at_ns"`
	TraceDir          string   `json:"trace_dir"`
	TraceFiles        []string `json:"trace_files"` // names
	TraceFilesSettled bool     `json:"trace_files_settled"`
	Note              *string  `json:"note"`
	BodyError         *string  `json:"body_error"` // of the work inside the window
}

// rejecting are answers that come before the handler of vLLM runs: the routes
// exist only where the server was started with a profiler, and 401, 403 and 407
// come from something in front of it.
var rejecting = map[int]bool{401: true, 403: true, 404: true, 405: true, 407: true}

func outcomeOf(a answer) string {
	switch {
	case a.ok():
		return Acknowledged
	case rejecting[a.status]:
		return Rejected
	}
	return Unknown
}

func (r *Record) mayProfile() bool {
	return r.StartOutcome == Acknowledged || r.StartOutcome == Unknown
}

// Stopped reports whether nothing can be profiling any more on account of the
// window.
func (r *Record) Stopped() bool {
	return r.StartOutcome == Rejected || r.StopStatus != nil && *r.StopStatus >= 200 && *r.StopStatus <= 299
}

func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
