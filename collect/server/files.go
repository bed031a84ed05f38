package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// IsWorkerTrace reports whether a file is named like the trace of a worker:
// rank0.<ns>.pt.trace.json.gz, dp0_pp0_tp1_dcp0_ep0_rank1.…; the trace of the
// API server (….async_llm.…) holds no GPU work.
func IsWorkerTrace(name string) bool {
	head, _, _ := strings.Cut(name, ".")
	return strings.Contains(name, ".pt.trace.json") && !strings.Contains(name, ".async_llm.") &&
		(strings.HasPrefix(name, "rank") || strings.Contains(head, "_rank"))
}

// sizes are files by name.
type sizes map[string]int64

// workerTraces lists the traces of workers in a directory. One that is not
// there holds none.
func workerTraces(dir string) (sizes, error) {
	out := sizes{}
	if dir == "" {
		return out, nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !IsWorkerTrace(e.Name()) {
			continue
		}
		st, err := os.Stat(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // renamed since, or a link that leads nowhere
		}
		if err != nil {
			return nil, err
		}
		if st.Mode().IsRegular() {
			out[e.Name()] = st.Size()
		}
	}
	return out, nil
}

// without returns the files that another listing does not have.
func (s sizes) without(before sizes) sizes {
	out := sizes{}
	for name, n := range s {
		if _, ok := before[name]; !ok {
			out[name] = n
		}
	}
	return out
}

func (s sizes) equal(o sizes) bool {
	if len(s) != len(o) {
		return false
	}
	for name, n := range s {
		if m, ok := o[name]; !ok || m != n {
			return false
		}
	}
	return true
}

func (s sizes) names() []string {
	out := make([]string, 0, len(s))
	for name := range s {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// newFiles waits for traces that were not there before, until two listings
// agree. settled is false where the time ran out before that.
func newFiles(ctx context.Context, c *Config, before sizes) (names []string, settled bool, err error) {
	started := time.Now()
	var previous sizes
	for {
		waited := time.Since(started)
		if previous != nil && (waited >= c.Flush || len(previous) == 0 && waited >= c.MissingGrace) {
			return previous.names(), false, nil
		}
		all, err := workerTraces(c.TraceDir)
		if err != nil {
			return nil, false, err
		}
		current := all.without(before)
		if len(current) > 0 && previous != nil && current.equal(previous) {
			return current.names(), true, nil
		}
		previous = current
		select {
		case <-time.After(c.Settle):
		case <-ctx.Done():
			return previous.names(), false, nil
		}
	}
}
