package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/convert"
)

// benchInputs are traces of the repository and how many stages they have.
var benchInputs = map[string]int{
	"../../testdata/own/vllm_eager_shapes.pt.trace.json.gz": 5,
	"../../testdata/visible/06_multimember.json.gz":         5,
	"../../testdata/demo/training-nsight/report.sqlite":     4,
}

func TestBench(t *testing.T) {
	for path, stages := range benchInputs {
		tmp := t.TempDir()
		stdout, stderr, code := commandLine(t, "bench", path, "--repeat", "2", "-j", "1", "--json", "--temp-dir", tmp)
		var b benchFile
		if err := json.Unmarshal([]byte(stdout), &b); err != nil || code != exitOK || stderr != "" {
			t.Fatalf("%d, %v: %s%s", code, err, stdout, stderr)
		}
		want, err := convert.Inspect(t.Context(), path, convert.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if b.Path != path || b.Bytes != want.Bytes || b.TextBytes != want.TextBytes || b.Events != want.Events || b.GPUEvents != want.GPUEvents || b.Outcome != want.Outcome || b.Procs != 1 || b.Written < 1000 {
			t.Errorf("%+v, want what inspect says: %+v", b, want.Report)
		}
		if len(b.Stages) != stages {
			t.Fatalf("%s: %d stages, want %d", path, len(b.Stages), stages)
		}
		own := 0.0
		for _, s := range b.Stages {
			own += s.Own
			if len(s.Runs) != 2 || s.Best.CPU <= 0 || s.Best.CPU > min(s.Runs[0].CPU, s.Runs[1].CPU) {
				t.Errorf("%s: stage %s: %+v", path, s.Stage, s)
			}
			for _, r := range s.Runs {
				if r.Wall <= 0 || r.RSS < 1<<20 || r.RSS > 4<<30 {
					t.Errorf("%s: stage %s: %+v", path, s.Stage, r)
				}
			}
		}
		if last := b.Stages[stages-1]; last.Stage != convert.StageWrite || own-last.Best.CPU > 1e-6 || last.Best.CPU-own > 1e-6 {
			t.Errorf("%s: the shares add up to %g, the last stage took %g", path, own, last.Best.CPU)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}

// TestBenchStages checks that every stage counts the same events.
func TestBenchStages(t *testing.T) {
	path := "../../testdata/own/hf_train_shapes.json.gz"
	var events, gpu int64
	for _, s := range convert.StagesOf(path) {
		stdout, stderr, code := commandLine(t, "bench", stageCommand, string(s), path, "--output", filepath.Join(t.TempDir(), "lake"))
		var r stageResult
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitOK {
			t.Fatalf("%s: %d, %v: %s", s, code, err, stderr)
		}
		if r.Bytes == 0 || (r.Written > 0) != (s == convert.StageWrite) {
			t.Errorf("%s: %+v", s, r)
		}
		if s == convert.StageStart || s == convert.StageText {
			continue
		}
		if events == 0 {
			events, gpu = r.Events, r.GPUEvents
		}
		if r.Events != events || r.GPUEvents != gpu || events == 0 || r.Outcome != "ok" {
			t.Errorf("%s: %d events, %d GPU events, %s; want %d, %d, ok", s, r.Events, r.GPUEvents, r.Outcome, events, gpu)
		}
	}
}

func TestBenchTable(t *testing.T) {
	stdout, _, code := commandLine(t, "bench", "../../testdata/own/hf_train_shapes.json.gz", "--repeat", "1")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != exitOK || len(lines) != 7 || !strings.Contains(lines[0], "hf_train_shapes.json.gz") {
		t.Fatalf("%d\n%s", code, stdout)
	}
	for i, stage := range []string{"stage", "start", "text", "decode", "link", "write"} {
		if f := strings.Fields(lines[i+1]); f[0] != stage || i > 1 && len(f) != 8 {
			t.Errorf("line %d: %s", i+1, lines[i+1])
		}
	}
}

func TestBenchBad(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "no.json")
	if err := os.WriteFile(text, []byte("no trace"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, c := range map[string]struct {
		code int
		args []string
	}{
		"name at least one":   {exitUsage, nil},
		"only once":           {exitUsage, []string{"-"}},
		"at least 1":          {exitUsage, []string{text, "--repeat", "0"}},
		"no.json: not JSON":   {exitInput, []string{text, "--repeat", "1"}},
		"nothing.json: no su": {exitInput, []string{filepath.Join(dir, "nothing.json")}},
	} {
		if stdout, stderr, code := commandLine(t, append([]string{"bench"}, c.args...)...); code != c.code || !strings.Contains(stderr, says) || stdout != "" {
			t.Errorf("%v: %d %q %q, want %d and %q", c.args, code, stdout, stderr, c.code, says)
		}
	}
	partial := "../../testdata/visible/05_truncated.json"
	if _, stderr, code := commandLine(t, "bench", partial, "--repeat", "1"); code != exitPartial {
		t.Errorf("partial: %d %s", code, stderr)
	}
}
