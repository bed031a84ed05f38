package isolate

import (
	"encoding/json"
	"time"
)

// Classes of outcomes. A worker's own error classes (oom_device, unsupported,
// missing_library, …) come on top.
const (
	OK          = "ok"
	NoResult    = "no_result"   // ended without a result line
	Segv        = "segv"        // SIGSEGV or SIGBUS
	Abort       = "abort"       // SIGABRT
	Timeout     = "timeout"     // ran longer than allowed
	Stall       = "stall"       // neither progress nor log output for too long
	OOMHost     = "oom_host"    // memory limit, or ended by the kernel for want of memory
	OOMDevice   = "oom_device"  // reported by the worker
	Killed      = "killed"      // ended by a signal from elsewhere
	Interrupted = "interrupted" // the supervisor was told to stop
	StartFailed = "start_failed"
	Failed      = "tracer" // a result of success, then a failing exit
)

// Spec says what to run and within which bounds. Zero bounds are none.
type Spec struct {
	Argv    []string
	Env     []string
	Dir     string
	LogPath string

	LogHead, LogTail int64 // bytes of the log kept at its start and end

	MaxRSS         int64
	Timeout, Stall time.Duration
	Grace          time.Duration // between SIGTERM and SIGKILL
	ExitGrace      time.Duration // for a worker whose result is in to exit

	// Progress is called for each progress event, from one goroutine.
	Progress func(Event)
}

// Event is a line of the worker on its event descriptor.
type Event struct {
	Event string `json:"event"`
	Name  string `json:"name,omitempty"`

	Done  float64 `json:"done,omitempty"`
	Total float64 `json:"total,omitempty"`
	What  string  `json:"what,omitempty"`

	Raw json.RawMessage `json:"-"`
}

// Result is the worker's last word.
type Result struct {
	OK        bool       `json:"ok"`
	Artifacts []Artifact `json:"artifacts"`
	Tables    []struct {
		Name string `json:"name"`
		Path string `json:"path"`
		Rows int64  `json:"rows"`
	} `json:"tables"`
	PeakDeviceBytes *int64          `json:"peak_device_bytes"`
	Details         json.RawMessage `json:"details"`
	Architecture    string          `json:"architecture"`
	Error           *Error          `json:"error"`

	Raw json.RawMessage `json:"-"`
}

// Artifact is a file or a directory that a worker names.
type Artifact struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

// Error is what a worker says about its own failure.
type Error struct {
	Class     string `json:"class"`
	Type      string `json:"type,omitempty"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

// Phase is a stretch of a worker's life.
type Phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Outcome is how a worker ended.
type Outcome struct {
	Class   string
	Message string

	Exit     int    // exit status, -1 when a signal ended it
	Signal   string // name of the signal, if any
	Started  time.Time
	Duration time.Duration
	Phases   []Phase
	PeakRSS  int64 // bytes, of the whole tree

	Start  json.RawMessage // the start event
	Result *Result

	Garbage   int64  // lines on the event descriptor that were no events
	LogBytes  int64  // what the worker wrote
	LogCut    int64  // what of that was not kept
	Leftovers int    // processes that outlived the worker and were ended
	Survivors int    // processes that could not be ended
	Confined  string // how the tree was held: "guard+cgroup", "guard", "process group"
}
