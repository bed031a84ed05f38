package collect

// Outcomes of jobs that did not run; the others are the classes of isolate and
// of the worker.
const (
	Done    = "done"    // the result was there
	Skipped = "skipped" // another tracer of its group stands for it
	Busy    = "busy"    // another process runs it
)

// Report is what became of one job.
type Report struct {
	Model     string  `json:"model"`
	Revision  string  `json:"revision,omitempty"`
	Framework string  `json:"framework"`
	Tracer    string  `json:"tracer"`
	Mode      string  `json:"mode"`
	Outcome   string  `json:"outcome"`
	Message   string  `json:"message,omitempty"`
	Dir       string  `json:"dir"`
	Attempt   int     `json:"attempt,omitempty"`
	Seconds   float64 `json:"seconds,omitempty"`
	PeakRSS   int64   `json:"peak_rss_bytes,omitempty"`
}

// Failed says whether the job should have run to its end and did not.
func (r *Report) Failed() bool {
	switch r.Outcome {
	case "ok", Done, Skipped, Busy:
		return false
	}
	return true
}

// Summary counts a run.
type Summary struct {
	Models  int            `json:"models"`
	Jobs    int            `json:"jobs"`
	Planned int            `json:"planned"`
	Failed  int            `json:"failed"`
	Classes map[string]int `json:"classes"`
	Seconds float64        `json:"seconds"`
}

func (s *Summary) add(r *Report) {
	s.Jobs++
	s.Classes[r.Outcome]++
	if r.Failed() {
		s.Failed++
	}
}
