package collected

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadJob(t *testing.T) {
	for _, c := range []struct {
		name, dir string
		files     map[string]string
		keys      Keys
		traces    string
		tables    string
	}{
		{
			"by its list", "x",
			map[string]string{
				StatusFile:       `{"model_id":"a/b","revision":"r","framework":"vllm","mode":"eval","tracer":"p","tracer_version":"2","artifacts":[{"path":"t/one.json","kind":"trace"},{"path":"r.json","kind":"report"},{"path":"et.json","kind":"trace"},{"path":"../../etc","kind":"trace"}],"tables":[{"name":"ops","path":"tables/ops.jsonl","rows":3},{"path":"tables/gone.jsonl","rows":1},{"path":"../up.jsonl","rows":1}]}`,
				"t/one.json":     "{}",
				"x.trace.json":   "{}",
				"et.json":        `{"schema": "1.1.1-chakra.0.0.4", "nodes": []}`,
				"tables/o.jsonl": "",
			},
			Keys{"a/b", "r", "vllm", "eval", "p", "2"},
			"t/one.json", "tables/gone.jsonl tables/o.jsonl tables/ops.jsonl",
		},
		{
			"of the older layout", "Qwen/Qwen3-4B/eval/torch_profiler",
			map[string]string{
				StatusFile:                      `{"tracer":"torch_profiler","framework":"huggingface","model":"Qwen3ForCausalLM","device":"cuda","mode":"eval","timestamp":"2026-01-01T00:00:00Z","success":true}`,
				"trace/h_1.2.pt.trace.json":     "{}",
				"rank0.1.pt.trace.json":         "{}",
				"rank0.1.pt.trace.json.gz":      "",
				"torch_profile.json":            "{}",
				".attempt-1/h_1.pt.trace.json":  "{}",
				"trace/.h_1.3.pt.trace.json.gz": "",
			},
			Keys{"Qwen/Qwen3-4B", "", "huggingface", "eval", "torch_profiler", ""},
			"rank0.1.pt.trace.json.gz trace/h_1.2.pt.trace.json", "",
		},
		{
			"of version 2", "x",
			map[string]string{StatusFile: `{"schema":2,"model":"gpt2","model_path":"/cache/snapshots/r","revision":"r","mode":"eval","tracer":"t","framework":"vllm","key":"k"}`},
			Keys{"gpt2", "r", "vllm", "eval", "t", ""},
			"", "",
		},
		{
			"of version 2, local", "x",
			map[string]string{StatusFile: `{"schema":2,"model":"tiny","model_path":"/m/tiny","mode":"eval","tracer":"t","framework":"vllm","key":"k"}`},
			Keys{"/m/tiny", "", "vllm", "eval", "t", ""},
			"", "",
		},
		{
			"of a local path", "torch_dispatch",
			map[string]string{StatusFile: `{"job":{"model_path":"/m/tiny","mode":"train","tracer":"torch_dispatch","framework":"huggingface"},"tables":"none"}`},
			Keys{"/m/tiny", "", "huggingface", "train", "torch_dispatch", ""},
			"", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), c.dir)
			write(t, dir, c.files)
			j, err := ReadJob(dir)
			if err != nil {
				t.Fatal(err)
			}
			var traces, tables []string
			for _, p := range j.Traces {
				rel, _ := filepath.Rel(dir, p)
				traces = append(traces, filepath.ToSlash(rel))
			}
			for _, f := range j.Tables {
				tables = append(tables, f.Name)
			}
			if j.Keys != c.keys || strings.Join(traces, " ") != c.traces || strings.Join(tables, " ") != c.tables {
				t.Errorf("%+v\ntraces %v\ntables %v", j.Keys, traces, tables)
			}
		})
	}
}

func TestBrokenStatus(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{StatusFile: `{"tracer": `})
	if _, err := ReadJob(dir); err == nil || !strings.Contains(err.Error(), StatusFile) {
		t.Errorf("%v", err)
	}
}

// TestLargeStatus: a status file beyond the limit is named and not read.
func TestLargeStatus(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, StatusFile)
	const text = `{"tracer": "t"}`
	for size, fails := range map[int]bool{maxStatus: false, maxStatus + 1: true} {
		write(t, dir, map[string]string{StatusFile: text + strings.Repeat(" ", size-len(text))})
		_, err := ReadJob(dir)
		if large := err != nil && strings.Contains(err.Error(), path) && strings.Contains(err.Error(), "larger than"); large != fails {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
