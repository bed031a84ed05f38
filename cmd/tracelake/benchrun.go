package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tracelake/convert"
)

// run runs one stage in a process of its own, so that CPU and memory are those
// of the stage.
func (o *benchOptions) run(ctx context.Context, stage convert.Stage, path string, procs int) (r benchRun, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(o.dir, "tracelake-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd := exec.CommandContext(ctx, self, "bench", stageCommand, string(stage), "--output", filepath.Join(dir, "lake"), "--", path)
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", procs))
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	started := time.Now()
	err = cmd.Run()
	r.Wall = time.Since(started).Seconds()
	if err != nil {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		text := strings.TrimPrefix(strings.TrimSpace(problems.String()), "tracelake: ")
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == exitInput {
			return r, errInput("%s", text)
		}
		return r, fmt.Errorf("%s: stage %s: %w: %s", path, stage, err, text)
	}
	if err := json.Unmarshal(out.Bytes(), &r.result); err != nil {
		return r, fmt.Errorf("%s: stage %s: %w", path, stage, err)
	}
	r.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	r.RSS = r.result.PeakRSS
	return r, nil
}

// peakRSS is the peak memory of this process alone, 0 where the system does not
// say. What wait reports counts the parent as well, as it was at the fork.
func peakRSS() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
