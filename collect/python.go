package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tracelake/collect/isolate"
	"tracelake/collect/worker"
)

// Python is an interpreter together with the worker package.
type Python struct {
	Path string // of the interpreter

	env     []string // the user's, with the package first on PYTHONPATH
	scratch string   // for job files and logs of small commands
	n       int
	mu      sync.Mutex
}

// FindPython returns the named interpreter, or that of the active environment,
// or python3.
func FindPython(named string, getenv func(string) string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", usage("--python %s: %v", named, err)
		}
		return filepath.Abs(path)
	}
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := getenv(v); dir != "" {
			if path, err := exec.LookPath(filepath.Join(dir, "bin", "python")); err == nil {
				return path, nil
			}
		}
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("there is no python3 on PATH; install Python 3.10 or newer, or name one with --python")
	}
	return filepath.Abs(path)
}

// NewPython unpacks the worker for an interpreter. Close removes its scratch
// files.
func NewPython(path string, environ []string) (*Python, error) { return newPython(path, environ, "") }

// newPython takes the worker from a directory, or unpacks its own.
func newPython(path string, environ []string, dir string) (*Python, error) {
	scratch, err := os.MkdirTemp("", "tracelake-collect-")
	if err != nil {
		return nil, err
	}
	if dir == "" {
		if dir, err = unpack(scratch); err != nil {
			_ = os.RemoveAll(scratch)
			return nil, fmt.Errorf("cannot unpack the worker: %w", err)
		}
	}
	search := dir
	if old := lookup(environ, "PYTHONPATH"); old != "" {
		search += string(os.PathListSeparator) + old
	}
	env := with(environ, "PYTHONPATH="+search, "TRACELAKE_EVENTS_FD=3", "PYTHONUNBUFFERED=1")
	return &Python{Path: path, env: env, scratch: scratch}, nil
}

// unpack puts the worker into the user's cache, or, where that cannot be
// written, into a directory of this run.
func unpack(scratch string) (string, error) {
	if user, err := os.UserCacheDir(); err == nil {
		if dir, err := worker.Unpack(filepath.Join(user, "tracelake")); err == nil {
			return dir, nil
		}
	}
	return worker.Unpack(filepath.Join(scratch, "worker"))
}

// Close removes scratch files.
func (p *Python) Close() { _ = os.RemoveAll(p.scratch) }

// file names a new scratch file.
func (p *Python) file(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	return filepath.Join(p.scratch, fmt.Sprintf("%d-%s", p.n, name))
}

// WorkerError is a failed command of the worker.
type WorkerError struct{ Class, Message string }

func (e *WorkerError) Error() string { return e.Message }

const (
	probeTimeout = 10 * time.Minute
	smallLog     = 256 << 10
)

// ask runs a short command of the worker and decodes its answer.
func (p *Python) ask(ctx context.Context, env []string, into any, args ...string) error {
	if env == nil {
		env = p.env
	}
	log := p.file(args[0] + ".log")
	defer os.Remove(log)
	out := isolate.Run(ctx, isolate.Spec{
		Argv: append([]string{p.Path, "-m", worker.Module}, args...), Env: env, Dir: p.scratch,
		LogPath: log, LogHead: smallLog, LogTail: smallLog, Timeout: probeTimeout,
	})
	return answer(out, into)
}

func answer(out isolate.Outcome, into any) error {
	if out.Class != isolate.OK {
		return &WorkerError{out.Class, out.Message}
	}
	if err := json.Unmarshal(out.Result.Raw, into); err != nil {
		return &WorkerError{isolate.NoResult, "the worker's answer: " + err.Error()}
	}
	return nil
}

// writeJob puts a job file into the scratch directory.
func (p *Python) writeJob(job any) (string, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return "", err
	}
	path := p.file("job.json")
	return path, os.WriteFile(path, text, 0o600)
}

// Library is what the probe says of a Python package.
type Library struct {
	Version    string `json:"version"`
	Importable bool   `json:"importable"`
	Error      string `json:"error"`
}

// Probe is what an interpreter offers.
type Probe struct {
	Python struct {
		Version    string `json:"version"`
		Executable string `json:"executable"`
	} `json:"python"`
	Platform  string             `json:"platform"`
	Libraries map[string]Library `json:"libraries"`
	CUDA      struct {
		Available bool   `json:"available"`
		Count     int    `json:"device_count"`
		Error     string `json:"error"`
		Devices   []struct {
			Name  string `json:"name"`
			Bytes int64  `json:"total_bytes"`
		} `json:"devices"`
	} `json:"cuda"`
	Compiler      *Compiler `json:"compiler"`
	Architectures []string  `json:"vllm_architectures"`
}

// Compiler is the C++ compiler that Inductor would use.
type Compiler struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// Probe asks what is installed. It imports the libraries, which takes seconds,
// except those that are unused.
func (p *Python) Probe(ctx context.Context, architectures bool, unused ...string) (*Probe, error) {
	args := []string{"probe"}
	if architectures {
		args = append(args, "--vllm-architectures")
	}
	for _, u := range unused {
		args = append(args, "--unused", u)
	}
	out := &Probe{}
	if err := p.ask(ctx, nil, out, args...); err != nil {
		return nil, fmt.Errorf("%s cannot say what is installed: %w", p.Path, err)
	}
	return out, nil
}

// lacks names the packages of a list that cannot be imported, with the reason.
func (p *Probe) lacks(names []string) []string {
	var out []string
	for _, n := range names {
		lib, known := p.Libraries[n]
		switch {
		case known && lib.Importable:
		case known && lib.Version != "":
			out = append(out, fmt.Sprintf("%s %s does not import (%s)", n, lib.Version, clipText(lib.Error, 200)))
		case known:
			out = append(out, n+" is not installed")
		}
	}
	return out
}

func clipText(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
