package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/collect"
	"tracelake/collect/isolate"
)

// programEnv makes the test binary the program itself.
const programEnv = "TRACELAKE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	isolate.MaybeGuard()
	if len(os.Args) > 2 && os.Args[1] == "bench" && os.Args[2] == stageCommand {
		os.Exit(run(os.Args[1:])) // what bench starts is the program under test
	}
	if os.Getenv(programEnv) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // guards end at once
	os.Exit(m.Run())
}

// barePython is an interpreter that has none of the libraries of models.
func barePython(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("../../collect/worker/tracelake_worker/__main__.py"); err != nil {
		t.Skip("SKIPPED: the Python side of the collector is not there")
	}
	p := os.Getenv("TRACELAKE_PYTHON")
	if p == "" {
		p = "python3"
	}
	if exec.Command(p, "-c", "import torch").Run() == nil {
		t.Skipf("%s has torch", p)
	}
	return p
}

func TestCollectUsage(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hf := []string{"--framework", "huggingface", "--output-dir", filepath.Join(dir, "out")}
	for says, c := range map[string]struct {
		code int
		args []string
	}{
		"which framework":             {2, []string{"collect", "--model", "a"}},
		"name a model":                {2, append([]string{"collect"}, hf...)},
		"neither an option":           {2, []string{"collect", "org/name"}},
		"list.txt:3: ":                {2, append([]string{"collect", "--model-list", file("list.txt", "a\n# b\nc d\n")}, hf...)},
		"every model":                 {2, append([]string{"collect", "--model", "a", "--skip-model-list", file("skip.txt", "a")}, hf...)},
		"nothing.txt: no such":        {5, append([]string{"collect", "--model-list", filepath.Join(dir, "nothing.txt")}, hf...)},
		"want a URL":                  {2, append([]string{"collect", "--model", "a", "--hf-endpoint", "hub"}, hf...)},
		"no prompt":                   {2, append([]string{"collect", "--model", "a", "--prompt-file", file("prompts", "\n \n")}, hf...)},
		"not UTF-8":                   {2, append([]string{"collect", "--model", "a", "--prompt-file", file("latin", "\xe4")}, hf...)},
		"options.nonsense":            {2, append([]string{"collect", "--model", "a", "--config", file("a.yaml", "options: {nonsense: 1}")}, hf...)},
		"options.server":              {2, append([]string{"collect", "--model", "a", "--config", file("d.yaml", "options: {server: 'http://h'}")}, hf...)},
		"options.die-with":            {2, append([]string{"collect", "--model", "a", "--config", file("e.yaml", "options: {die-with: 1}")}, hf...)},
		"--run goes with":             {2, append([]string{"collect", "--model", "a", "--run", "r"}, hf...)},
		"options.jobs":                {2, append([]string{"collect", "--model", "a", "--config", file("b.yaml", "options: {jobs: many}")}, hf...)},
		"c.yaml: yaml: unmarshal":     {2, append([]string{"collect", "--model", "a", "--config", file("c.yaml", "surprise: 1")}, hf...)},
		"--model-path and one tracer": {2, append([]string{"worker", "--tracer", "x"}, hf...)},
		"one tracer with --tracer":    {2, append([]string{"worker", "--model-path", dir, "--tracer", "all"}, hf...)},
		"unknown flag: --models":      {2, []string{"collect", "--models", "a"}},
		"--batch-size: at least 1":    {2, append([]string{"collect", "--model", "a", "--batch-size", "0"}, hf...)},
	} {
		if _, stderr, code := commandLine(t, c.args...); code != c.code || !strings.Contains(stderr, says) {
			t.Errorf("%v: exit %d, %s; want %d and …%s…", c.args, code, stderr, c.code, says)
		}
	}
}

// The file's values stand below the flags.
func TestCollectDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	text := "options: {jobs: 3, tracers: [a, b], max-rss: 1GiB, mode: train, model: [x/a, x/b]}\ntimeouts: {hf_trace: 60, vllm_trace: 90, stall: 0}\nbehavior: {if_exists: overwrite}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	o := &collectOptions{}
	c := newCollectPlanCommand()
	c.ResetFlags()
	o.flags(c.Flags())
	if err := c.ParseFlags([]string{"--framework", "vllm", "--config", path, "--jobs", "1", "--output-dir", "o"}); err != nil {
		t.Fatal(err)
	}
	got, err := o.options(c.Flags())
	if err != nil {
		t.Fatal(err)
	}
	if got.Jobs != 1 || strings.Join(got.Tracers, " ") != "a b" || got.MaxRSS != 1<<30 || got.Mode != "train" || got.Timeout.Seconds() != 90 || got.StallTimeout != 0 || !got.Force || len(got.Models) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestListWithoutLibraries(t *testing.T) {
	p := barePython(t)
	out, stderr, code := commandLine(t, "collect", "--list-tracers", "--python", p, "--json")
	if code != 0 {
		t.Fatal(stderr)
	}
	names := map[string]bool{}
	for line := range strings.Lines(out) {
		var tracer collect.Tracer
		if err := json.Unmarshal([]byte(line), &tracer); err != nil {
			t.Fatal(err)
		}
		names[tracer.Name] = true
	}
	if !names["torch_profiler"] || !names["vllm_profiler"] {
		t.Error(out)
	}
	if out, stderr, code := commandLine(t, "collect", "--list-tracers", "--framework", "vllm", "--python", p); code != 0 || strings.Contains(out, "torch_dispatch") {
		t.Errorf("%s%s", out, stderr)
	}
	if out, stderr, code := commandLine(t, "collect", "--describe-tracer", "meta_ops", "--python", p); code != 0 || !strings.Contains(out, "tables") {
		t.Errorf("%s%s", out, stderr)
	}
	if _, stderr, code := commandLine(t, "collect", "--describe-tracer", "unheard", "--python", p); code != 2 {
		t.Errorf("%d, %s", code, stderr)
	}
}

func TestMissingLibraryIsOneLine(t *testing.T) {
	p := barePython(t)
	dir := t.TempDir()
	for _, args := range [][]string{
		{"collect", "--framework", "huggingface", "--model", "org/a", "--output-dir", dir, "--python", p},
		{"collect", "--framework", "vllm", "--model", "org/a", "--output-dir", dir, "--python", p},
		{"worker", "--framework", "huggingface", "--model-path", dir, "--tracer", "meta_ops", "--output-dir", dir, "--python", p},
	} {
		_, stderr, code := commandLine(t, args...)
		if code != 1 || strings.Contains(stderr, "\n") || !strings.Contains(stderr, "torch is not installed") {
			t.Errorf("%v: %d, %s", args, code, stderr)
		}
	}
	out, stderr, code := commandLine(t, "collect", "doctor", "--python", p)
	if code != 0 || !strings.Contains(out, "pip install 'torch") || !strings.Contains(out, "no: torch is not installed") {
		t.Errorf("%d, %s\n%s", code, stderr, out)
	}
}
