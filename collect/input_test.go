package collect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestModelList(t *testing.T) {
	const text = "\ufeff# comment\n\n org/a \r\norg/b@v1.0\norg/a\n\t#x\ngpt2\norg/b@refs/pr/3\n./local/dir\n"
	got, err := readModelList(strings.NewReader(text), "list.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range got {
		names = append(names, m.ID+"@"+m.Revision)
	}
	if s := strings.Join(names, " "); s != "org/a@ org/b@v1.0 gpt2@ org/b@refs/pr/3 dir@" {
		t.Error(s)
	}
	if !filepath.IsAbs(got[4].Path) {
		t.Error(got[4])
	}
	for _, bad := range []string{
		"org/../x", "org/name/x", "a b", "org/a\x00", "org/a\x1b[31m", "-x", "org/-x", "org/..", "@x", "org/a@", "org/a@../x", "org/a@-x", "org/a@/x",
		"org//a", "org/a/", "org/a--b", "org/\xff", "org/ä", strings.Repeat("a", 300), "org\\a", "C:/x", strings.Repeat("a", maxLine+1),
	} {
		_, err := readModelList(strings.NewReader("org/ok\n"+bad+"\n"), "list.txt")
		if err == nil || !strings.Contains(err.Error(), "list.txt:2: ") {
			t.Errorf("%.60q: %v", bad, err)
		}
	}
	skip, _ := readModelList(strings.NewReader("org/b\ngpt2@x\n"), "skip.txt")
	names = nil
	for _, m := range Without(got, skip) {
		names = append(names, m.ID)
	}
	if s := strings.Join(names, " "); s != "org/a gpt2 dir" {
		t.Error(s)
	}
}

func TestSubdir(t *testing.T) {
	seen := map[string]bool{}
	for _, text := range []string{"org/a", "org/a@v1", "org/a@refs/pr/1", "a", "/x/a", "/y/a", "./a"} {
		m, err := ParseModel(text)
		if err != nil {
			t.Fatal(err)
		}
		d := m.Subdir()
		if seen[d] || !filepath.IsLocal(d) {
			t.Errorf("%s: %s", text, d)
		}
		seen[d] = true
	}
}

func FuzzParseModel(f *testing.F) {
	f.Add("org/a@v1")
	f.Fuzz(func(t *testing.T, s string) {
		if m, err := ParseModel(s); err == nil && (!filepath.IsLocal(m.Subdir()) || strings.ContainsAny(m.Subdir(), "\x00\n")) {
			t.Errorf("%q: %q", s, m.Subdir())
		}
	})
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	read := func(text string) (*Config, error) {
		path := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return ReadConfig(path)
	}
	// The layout of the system whose options these are.
	c, err := read(`
env:
  common:
    HF_HOME: "~/.cache/huggingface"
    HF_HUB_DISABLE_TELEMETRY: "1"
  offline:
    HF_HUB_OFFLINE: "1"
  vllm_profiler:
    X: 1
timeouts:
  download: 3600   # seconds
  hf_trace: 900
  vllm_trace: 20m
behavior:
  bypass_if_exists: true
  continue_on_failure: true
  if_exists: skip
options:
  tracers: [print_fx, torch_profiler]
  jobs: 2
tracer_options:
  torch_profiler: {warmup: 2}
`)
	if err != nil {
		t.Fatal(err)
	}
	if time.Duration(*c.Timeouts.Download) != time.Hour || time.Duration(*c.Timeouts.VLLMTrace) != 20*time.Minute || c.Timeouts.Stall != nil || c.Force() || c.Env["vllm_profiler"]["X"] != "1" {
		t.Errorf("%+v", c)
	}
	if s := fmt.Sprint(c.environ([]string{"HF_HOME=mine"}, "common", "offline")); s != "[HF_HOME=mine HF_HUB_DISABLE_TELEMETRY=1 HF_HUB_OFFLINE=1]" {
		t.Error(s)
	}
	for text, says := range map[string]string{
		"timeout: 3":                             "line 1",
		"timeouts: {hf_trace: soon}":             "soon",
		"timeouts: {hf_trace: -1}":               "-1",
		"env: [a]":                               "line 1",
		"a: &a [*a, *a]":                         "c.yaml",
		"\tx":                                    "c.yaml",
		"env: {common: {'A=B': c}}":              "A=B",
		"behavior: {continue_on_failure: false}": "continue_on_failure",
		"behavior: {if_exists: maybe}":           "maybe",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if c, err := read(""); err != nil || c.Force() {
		t.Errorf("empty: %v", err)
	}
	if c, err := read("behavior: {if_exists: overwrite}"); err != nil || !c.Force() {
		t.Errorf("overwrite: %v", err)
	}
}
