package collect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzModelList reads a list of models: each line gives at most one, and each
// is one that can be given alone.
func FuzzModelList(f *testing.F) {
	for _, s := range []string{"org/a\n# no\n\n/x/b\n", "\ufefforg/a@v1", "org/a\r\norg/a\r\n", "a\x00b", strings.Repeat("a", maxLine+1), "../../x", "~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		models, err := readModelList(strings.NewReader(text), "list")
		if err != nil {
			if !strings.Contains(err.Error(), "list") {
				t.Fatalf("%v does not name the file", err)
			}
			return
		}
		if len(models) > strings.Count(text, "\n")+1 {
			t.Fatalf("%q: %d models", text, len(models))
		}
		for _, m := range models {
			if d := m.Subdir(); !filepath.IsLocal(d) || strings.ContainsAny(d, "\x00\n") {
				t.Fatalf("%q: %q", text, d)
			}
		}
	})
}

// FuzzConfig reads a file of defaults: times are not negative, and what is
// refused is the user's mistake.
func FuzzConfig(f *testing.F) {
	for _, s := range []string{
		"timeouts:\n  download: 3600\n  hf_trace: 15m\n", "timeouts: {download: .nan}", "timeouts: {download: -1}", "env: {common: {A: b}}",
		"options: {jobs: 2}", "behavior: {if_exists: skip}", "a: &x [*x]", "{", "- 1", `{"env":{"a":{"=":"1"}}}`, "a: &a [1]\nb: &b [*a,*a]\n",
	} {
		f.Add([]byte(s))
	}
	file := filepath.Join(f.TempDir(), "c.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			t.Skip()
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ReadConfig(file)
		if err != nil {
			var usage *UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), file) {
				t.Fatal(err)
			}
			return
		}
		for _, d := range []*Duration{c.Timeouts.Download, c.Timeouts.HFTrace, c.Timeouts.VLLMTrace, c.Timeouts.Stall} {
			if d != nil && *d < 0 {
				t.Fatalf("%q: %v", text, time.Duration(*d))
			}
		}
		_ = c.environ([]string{"A=b"}, "common")
	})
}

// FuzzStatus reads a status file: one that is read names its tracer and can be
// written and read again.
func FuzzStatus(f *testing.F) {
	for _, s := range []string{`{"schema":2,"tracer":"x","tables":[{"name":"t","path":"p","rows":1}]}`, `{"tracer":""}`, `{}`, `null`, `{"tracer":"x","schema":-1}`, `[`, `{"tracer":"x","started":"2026"}`} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	file, again := filepath.Join(dir, "status.json"), filepath.Join(dir, "again.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ReadStatus(file)
		if err != nil {
			if !strings.Contains(err.Error(), file) {
				t.Fatalf("%v does not name the file", err)
			}
			return
		}
		if s.Tracer == "" || s.Schema == 0 {
			t.Fatalf("%+v", s)
		}
		if err := s.write(again); err != nil {
			t.Fatal(err)
		}
		if x, err := ReadStatus(again); err != nil || x.Tracer != s.Tracer || len(x.Tables) != len(s.Tables) {
			t.Fatalf("%q: %+v, then %+v, %v", text, s, x, err)
		}
	})
}
