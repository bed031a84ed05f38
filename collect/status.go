package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"tracelake/collect/isolate"
	"tracelake/internal/regular"
)

// Names of files in a tracer's directory.
const (
	StatusFile  = "_TRACE_STATUS.json"
	LogFile     = "_TRACE_LOG.txt"
	failedFile  = "_TRACE_STATUS.failed.json"
	failedLog   = "_TRACE_LOG.failed.txt"
	statusLimit = 64 << 20
)

// StatusVersion is the schema of status files that are written.
const StatusVersion = 2

// Status is the status file of a tracer's directory. The first seven fields
// are those of version 1, which other readers know.
type Status struct {
	Tracer    string `json:"tracer"`
	Framework string `json:"framework"`
	Model     string `json:"model"` // its Python class, the name where that is not known
	Device    string `json:"device"`
	Mode      string `json:"mode"`
	Timestamp string `json:"timestamp"`
	Success   bool   `json:"success"`

	Schema        int    `json:"schema"`
	ModelID       string `json:"model_id"`
	TracerVersion string `json:"tracer_version,omitempty"`
	Revision      string `json:"revision,omitempty"`
	ModelPath     string `json:"model_path,omitempty"`
	Architecture  string `json:"architecture,omitempty"`

	Outcome string         `json:"outcome"`
	Message string         `json:"message,omitempty"`
	Error   *isolate.Error `json:"error,omitempty"`

	Key      string         `json:"key"`
	KeyParts map[string]any `json:"key_parts"`

	Attempt         int             `json:"attempt"`
	ExitStatus      *int            `json:"exit_status,omitempty"`
	Signal          string          `json:"signal,omitempty"`
	Started         string          `json:"started,omitempty"`
	Seconds         float64         `json:"seconds"`
	Phases          []isolate.Phase `json:"phases,omitempty"`
	PeakRSS         int64           `json:"peak_rss_bytes,omitempty"`
	PeakDevice      *int64          `json:"peak_device_bytes,omitempty"`
	Artifacts       []Artifact      `json:"artifacts,omitempty"`
	ArtifactsBeyond int             `json:"artifacts_not_listed,omitempty"`
	Tables          []Table         `json:"tables,omitempty"`
	Log             string          `json:"log,omitempty"`
	LogBytes        int64           `json:"log_bytes,omitempty"`
	LogCut          int64           `json:"log_cut_bytes,omitempty"`
	Leftovers       int             `json:"leftover_processes,omitempty"`
	Survivors       int             `json:"surviving_processes,omitempty"`
	Garbage         int64           `json:"garbage_lines,omitempty"`
	Confined        string          `json:"confined,omitempty"`
	GPUs            []string        `json:"gpus,omitempty"`
	Start           json.RawMessage `json:"worker,omitempty"`
	Details         json.RawMessage `json:"details,omitempty"`
	Writer          string          `json:"writer,omitempty"`
	Host            string          `json:"host,omitempty"`
}

// Table is a table that a tracer wrote.
type Table struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Rows int64  `json:"rows"`
}

// ReadStatus reads a status file of either version. One of version 1 has
// Schema 1.
func ReadStatus(path string) (*Status, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > statusLimit {
		return nil, fmt.Errorf("%s: no status file", path)
	}
	text, err := regular.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Status{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Tracer == "" {
		return nil, fmt.Errorf("%s: names no tracer", path)
	}
	if s.Schema == 0 {
		s.Schema = 1
	}
	return s, nil
}

// write replaces a status file as a whole.
func (s *Status) write(path string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(text, '\n'))
}

// writeFile writes beside the target and renames.
func writeFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".status-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(text); err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// expected names what tracers of the system that writes version 1 leave, as
// patterns of which each has to match a file that is not empty.
var expected = map[string][]string{
	"torch_dispatch": {"torch_dispatch.json"},
	"torch_profiler": {"torch_profile.json", "torch_kernel_profile.json", "torch_kernel_profile.csv", "trace/*.pt.trace.json*"},
	"torch_inductor": {"torch_inductor.txt", "torch_inductor_kernels.json"},
	"print_aten_ops": {"print_aten.txt"},
	"print_fx":       {"print_fx.json"},
	"vllm_profiler":  {"vllm_profile.json", "vllm_kernel_profile.json", "vllm_kernel_profile.csv", "*.pt.trace.json*"},
}

// Verdict says whether a directory holds the result of a job already.
type Verdict struct {
	Done bool
	Why  string // in either case
	// Good says that there is a successful result, of this job or another, that
	// must not be lost to a failure.
	Good bool
	last *Status
}

// judge compares what is in a job's directory with the job. Where the model's
// commit is not known, everything else decides.
func judge(j *Job) Verdict {
	s, err := ReadStatus(filepath.Join(j.Dir, StatusFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Verdict{Why: "no result yet"}
	case err != nil:
		return Verdict{Why: "unreadable status file"}
	}
	v := Verdict{last: s}
	if !s.Success {
		v.Why = "the last attempt failed: " + s.Outcome
		return v
	}
	if s.Schema == 1 {
		return judgeOld(j, s, v)
	}
	if why := verify(j.Dir, s); why != "" {
		v.Why = why
		return v
	}
	v.Good = true
	parts := j.key
	if j.Revision == "" {
		parts = cloneMap(j.key)
		parts["revision"] = s.KeyParts["revision"]
	}
	if keyHash(parts) != s.Key {
		v.Why = "made with other " + strings.Join(differing(parts, s.KeyParts), ", ")
		return v
	}
	v.Done, v.Why = true, "the same job succeeded before"
	if j.Revision == "" {
		v.Why = "the same job succeeded before (the model is not in the cache; its revision was not compared)"
	}
	return v
}

// judgeOld honours a status file of version 1: it says little, so that it
// counts only for a job that asks for nothing beyond it and while the files
// are there.
func judgeOld(j *Job, s *Status, v Verdict) Verdict {
	patterns, known := expected[s.Tracer]
	v.Good = true
	for _, p := range patterns {
		found, _ := filepath.Glob(filepath.Join(globQuote(j.Dir), p))
		if !slices.ContainsFunc(found, notEmpty) {
			v.Why = "a result of version 1 without its " + p
			return v
		}
	}
	switch {
	case s.Tracer != j.Tracer.Name || s.Framework != j.Framework || s.Mode != j.Mode || strings.TrimSuffix(s.Device, ":0") != j.Device:
		v.Why = "a result of version 1 of another tracer, framework, mode or device"
	case !known:
		v.Why = "a result of version 1 of a tracer whose files are not known"
	case !j.plain():
		v.Why = "a result of version 1, which does not tell the options of this job"
	default:
		v.Done, v.Why = true, "it succeeded before (status of version 1: revision and library versions are not known)"
	}
	return v
}

// plain says whether a job asks for nothing that version 1 cannot express.
func (j *Job) plain() bool {
	return j.key["layers"] == 0 && j.key["sequence_length"] == 0 && j.key["batch_size"] == 1 && j.key["prompts"] == "" &&
		j.key["options"] == "" && j.key["dummy_weights"] == false && j.key["dtype"] == "auto" && j.Model.Revision == ""
}

func notEmpty(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Size() > 0
}

func globQuote(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// differing names the parts in which two keys differ.
func differing(a, b map[string]any) []string {
	a, b = plainMap(a), plainMap(b)
	var out []string
	for k := range a {
		if !reflect.DeepEqual(a[k], b[k]) {
			out = append(out, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// plainMap brings a map into the types that JSON knows.
func plainMap(m map[string]any) map[string]any {
	text, _ := json.Marshal(m)
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	_ = d.Decode(&out)
	return out
}

func cloneMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m)+1)
	for k, v := range m {
		out[k] = v
	}
	return out
}
