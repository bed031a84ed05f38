package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tracelake/collect/isolate"
	"tracelake/collect/modelcache"
	"tracelake/collect/worker"
)

// modelError is why a model cannot be traced; its class becomes the outcome of
// its jobs.
type modelError struct{ class, text string }

func (e *modelError) Error() string { return e.text }

// smallFiles are what of a repository is fetched first: everything but weights.
var smallFiles = []string{"*.json", "*.txt", "*.model", "*.jinja", "*.py", "*.tiktoken", "*.spm"}

// foreign are files of other programs, and directories that no loader looks at.
var foreign = []string{"original/*", "onnx/*", "openvino/*", "coreml/*", "*.gguf", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.pth", "runs/*"}

// fetch brings a model into the cache, one process at a time, and returns it.
func (r *runner) fetch(ctx context.Context, m Model, weights bool) (*modelcache.Snapshot, error) {
	if m.Path != "" {
		s, err := modelcache.Local(m.Path)
		if err != nil {
			return nil, &modelError{"not_found", err.Error()}
		}
		return s, nil
	}
	if r.o.Offline {
		return r.cached(m, "--offline was given")
	}
	l, err := r.lockModel(ctx, m)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	need := modelcache.Need{Weights: weights, ShardsFirst: r.o.Framework == VLLM}
	// A pinned commit never changes: what is whole is not asked for again.
	if s, err := r.cached(m, ""); err == nil && s.Revision == m.Revision && len(s.Check(need)) == 0 {
		return s, nil
	}
	if err := r.download(ctx, m, smallFiles, foreign, false); err != nil {
		return r.instead(m, need, err)
	}
	s, err := r.cached(m, "")
	if err != nil || !weights {
		return s, err
	}
	if len(s.Check(need)) == 0 {
		return s, nil
	}
	allow := s.Weights(need.ShardsFirst)
	if allow == nil { // a client that keeps no listing
		allow = []string{"*.safetensors", "*.bin", "*.json"}
	}
	if err := r.download(ctx, m, allow, foreign, false); err != nil {
		return nil, err
	}
	if s, err = r.cached(m, ""); err != nil {
		return nil, err
	}
	// What the client holds for whole and is not is fetched once more.
	if bad := broken(s.Check(need)); len(bad) > 0 {
		r.notice(fmt.Sprintf("%s: fetching again what is broken in the cache: %s", m, strings.Join(bad, ", ")))
		if err := r.download(ctx, m, bad, nil, true); err != nil {
			return nil, err
		}
		return r.cached(m, "")
	}
	return s, nil
}

// instead returns a whole model from the cache where the hub cannot be reached.
func (r *runner) instead(m Model, need modelcache.Need, err error) (*modelcache.Snapshot, error) {
	var failed *modelError
	if !errors.As(err, &failed) || !slices.Contains([]string{"network", isolate.Timeout, isolate.Stall}, failed.class) {
		return nil, err
	}
	s, missing := r.cached(m, "")
	if missing != nil || len(s.Check(need)) > 0 {
		return nil, err
	}
	r.notice(fmt.Sprintf("%s: the hub cannot be reached (%s); using what is in the cache", m, failed.text))
	return s, nil
}

func broken(problems []modelcache.Problem) []string {
	var out []string
	for _, p := range problems {
		switch p.Code {
		case modelcache.Size, modelcache.Header, modelcache.Dangling, modelcache.Missing, modelcache.Pointer, modelcache.BadConfig, modelcache.Index:
			if p.File != "" && !slices.Contains(out, p.File) {
				out = append(out, p.File)
			}
		}
	}
	return out
}

// cached finds a model in the cache without asking the hub.
func (r *runner) cached(m Model, why string) (*modelcache.Snapshot, error) {
	s, err := modelcache.Find(r.cache, m.ID, m.Revision)
	if errors.Is(err, fs.ErrNotExist) {
		text := fmt.Sprintf("not in the cache at %s", r.cache)
		if why != "" {
			text += ", and " + why
		}
		return nil, &modelError{"incomplete", text}
	}
	if err != nil {
		return nil, &modelError{"incomplete", err.Error()}
	}
	return s, nil
}

// lockModel waits until no other process fetches the same model.
func (r *runner) lockModel(ctx context.Context, m Model) (*os.File, error) {
	dir := filepath.Join(r.cache, ".locks", "tracelake")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &modelError{"network", fmt.Sprintf("the model cache cannot be written: %v", err)}
	}
	path := filepath.Join(dir, strings.ReplaceAll(m.ID, "/", "--")+".lock")
	told := false
	for {
		l, err := tryLock(path)
		if err != nil {
			return nil, &modelError{"network", fmt.Sprintf("the model cache cannot be locked: %v", err)}
		}
		if l != nil {
			return l, nil
		}
		if !told {
			told = true
			r.notice(fmt.Sprintf("%s: another process fetches it; waiting", m))
		}
		select {
		case <-ctx.Done():
			return nil, &modelError{isolate.Interrupted, "stopped on request"}
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// download runs the worker's download command under the same supervision as a
// tracer.
func (r *runner) download(ctx context.Context, m Model, allow, ignore []string, again bool) error {
	job := r.o.workerJob(m)
	job.Options = map[string]any{"allow_patterns": allow, "ignore_patterns": ignore, "max_workers": 4, "force": again}
	if m.Revision != "" {
		job.Revision = &m.Revision
	}
	path, err := r.py.writeJob(job)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	env := r.o.Config.environ(r.py.env, "common")
	if r.o.HFEndpoint != "" {
		env = with(env, "HF_ENDPOINT="+r.o.HFEndpoint)
	}
	for try := 0; ; try++ {
		log := r.py.file("download.log")
		out := isolate.Run(ctx, isolate.Spec{
			Argv: []string{r.py.Path, "-m", worker.Module, "download", "--job", path}, Env: env, Dir: r.py.scratch,
			LogPath: log, LogHead: smallLog, LogTail: smallLog, Timeout: r.o.DownloadTimeout, Stall: r.o.StallTimeout,
		})
		os.Remove(log)
		if out.Class == isolate.OK {
			return nil
		}
		if try < r.o.Retry && ctx.Err() == nil && retryable(out.Class) {
			r.notice(fmt.Sprintf("%s: download: %s (%s); trying again", m, out.Class, out.Message))
			continue
		}
		class := out.Class
		if class == isolate.Failed {
			class = "network"
		}
		return &modelError{class, "download: " + out.Message}
	}
}

// retryable says whether another attempt may end otherwise.
func retryable(class string) bool {
	switch class {
	case isolate.OK, isolate.Interrupted, isolate.StartFailed, "unsupported", "missing_library", "bad_request", "gated", "not_found", "model", notConverted:
		return false
	}
	return true
}
