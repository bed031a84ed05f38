package collected

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tracelake/internal/regular"
)

// StatusFile is the name of the file that makes a directory the output of a
// job.
const StatusFile = "_TRACE_STATUS.json"

// Keys tell which job a row comes from. A key is "" where nothing tells it.
type Keys struct {
	Model, Revision, Framework, Mode, Tracer, TracerVersion string
}

// Job is the output of one tracer on one model.
type Job struct {
	Dir     string // as given
	Keys    Keys
	Key     string // digest of everything that determined the job
	Attempt string // differs between runs of the same job
	Tables  []TableFile
	Traces  []string // profiler traces, by path
}

// TableFile is a file with the rows of a table.
type TableFile struct {
	Path string // to open it
	Name string // within the job, with slashes
	Rows int64  // rows that the status file promises; -1 where it does not say
}

// IsJob reports whether a directory is the output of a job.
func IsJob(dir string) bool {
	st, err := os.Stat(filepath.Join(dir, StatusFile))
	return err == nil && st.Mode().IsRegular()
}

// status is what the status file says, in the layout of this program or of the
// older one whose files have no model ID and no list of artefacts.
type status struct {
	Schema        int        `json:"schema"`
	Model         string     `json:"model"` // of version 1: the Python class
	ModelID       string     `json:"model_id"`
	ModelPath     string     `json:"model_path"`
	Revision      string     `json:"revision"`
	Framework     string     `json:"framework"`
	Mode          string     `json:"mode"`
	Tracer        string     `json:"tracer"`
	TracerVersion string     `json:"tracer_version"`
	Artifacts     []artifact `json:"artifacts"`
	Unlisted      int        `json:"artifacts_not_listed"`
	Tables        []promise  `json:"tables"`
}

type artifact struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

type promise struct {
	Path string `json:"path"`
	Rows *int64 `json:"rows"`
}

// ReadJob reads the status file of a directory and lists what can be imported.
func ReadJob(dir string) (*Job, error) {
	text, err := readBounded(filepath.Join(dir, StatusFile), maxStatus)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, StatusFile)
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var s status
	// What determined the job may stand beside the outcome or in an object of
	// its own; what is said outside counts.
	for _, part := range []json.RawMessage{all["result"], all["key"], all["job"], text} {
		if len(part) == 0 || bytes.TrimSpace(part)[0] != '{' {
			continue
		}
		// A key of another type than expected says nothing; the others count.
		var odd *json.UnmarshalTypeError
		if err := json.Unmarshal(part, &s); err != nil && !errors.As(err, &odd) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	sum := sha256.Sum256(text)
	j := &Job{Dir: dir, Attempt: hex.EncodeToString(sum[:8])}
	j.Keys = s.keys(dir)
	j.Key = s.jobKey(all)
	promised := map[string]int64{}
	for _, p := range s.Tables {
		if p.Rows != nil {
			promised[filepath.ToSlash(filepath.Clean(p.Path))] = *p.Rows
		}
	}
	if err := j.findTables(promised); err != nil {
		return nil, err
	}
	return j, j.findTraces(s.Artifacts, s.Unlisted > 0)
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	return text, err
}

// keys takes the model from the status file, or from the directory where the
// file is of the older layout: <org>/<name>/<mode>/<tracer>.
func (s *status) keys(dir string) Keys {
	k := Keys{s.ModelID, s.Revision, s.Framework, s.Mode, s.Tracer, s.TracerVersion}
	if k.Model == "" && s.Schema >= 2 {
		k.Model = s.Model
		if k.Revision == "" && s.ModelPath != "" { // a local model, whose name says little
			k.Model = s.ModelPath
		}
	}
	if k.Model != "" {
		return k
	}
	if abs, err := filepath.Abs(dir); err == nil {
		p := strings.Split(filepath.ToSlash(abs), "/")
		if n := len(p); n > 4 && k.Mode != "" && p[n-2] == k.Mode && p[n-1] == k.Tracer {
			k.Model = p[n-4] + "/" + p[n-3]
			return k
		}
	}
	k.Model = s.ModelPath
	return k
}

// jobKey returns the key of the job as the status file states it, or a digest
// of what the file says about it.
func (s *status) jobKey(all map[string]json.RawMessage) string {
	for _, name := range []string{"job_key", "key"} {
		var text string
		if json.Unmarshal(all[name], &text) == nil && text != "" {
			return text
		}
	}
	for _, name := range []string{"job", "key"} {
		if v := bytes.TrimSpace(all[name]); len(v) > 0 && v[0] == '{' {
			var b bytes.Buffer
			if json.Compact(&b, v) == nil {
				sum := sha256.Sum256(b.Bytes())
				return hex.EncodeToString(sum[:8])
			}
		}
	}
	return ""
}

func (j *Job) findTables(promised map[string]int64) error {
	entries, err := os.ReadDir(filepath.Join(j.Dir, "tables"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), ".jsonl") {
			continue
		}
		name := "tables/" + e.Name()
		rows, ok := promised[name]
		if !ok {
			rows = -1
		}
		seen[name] = true
		j.Tables = append(j.Tables, TableFile{filepath.Join(j.Dir, "tables", e.Name()), name, rows})
	}
	// A promised file that is not there is reported when it is opened.
	for name, rows := range promised {
		if !seen[name] && filepath.IsLocal(filepath.FromSlash(name)) {
			j.Tables = append(j.Tables, TableFile{filepath.Join(j.Dir, filepath.FromSlash(name)), name, rows})
		}
	}
	slices.SortFunc(j.Tables, func(a, b TableFile) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// findTraces lists the profiler traces: what the status file calls a trace, or
// what is named like one where it lists none, or not all of its files.
func (j *Job) findTraces(artifacts []artifact, unlisted bool) error {
	found := map[string]bool{}
	for _, a := range artifacts {
		if a.Kind != "trace" || !filepath.IsLocal(filepath.FromSlash(a.Path)) {
			continue
		}
		if p := filepath.Join(j.Dir, filepath.FromSlash(a.Path)); IsTraceName(p) || !isExecutionTrace(p) {
			found[p] = true
		}
	}
	if len(found) == 0 || unlisted {
		err := regular.WalkDir(j.Dir, func(p string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case p != j.Dir && strings.HasPrefix(e.Name(), "."):
				if e.IsDir() {
					return fs.SkipDir
				}
			case !e.IsDir() && IsTraceName(e.Name()):
				found[p] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for p := range found {
		if found[p+".gz"] { // the same trace, decompressed for people
			continue
		}
		j.Traces = append(j.Traces, p)
	}
	slices.Sort(j.Traces)
	return nil
}

// isExecutionTrace reports whether a file is an execution trace, which lists
// operators without times: tracers put what it says into the table ops.
func isExecutionTrace(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	return bytes.Contains(head[:n], []byte("-chakra"))
}

// IsTraceName reports whether a file is named like a trace of the PyTorch
// profiler.
func IsTraceName(name string) bool {
	for _, s := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, s)
	}
	return strings.HasSuffix(name, ".trace.json")
}
