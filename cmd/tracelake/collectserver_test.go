package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// profiled is an HTTP server on loopback that writes real traces of a worker
// and of an API server when it is told to stop profiling, as vLLM does. A vLLM
// with a GPU is not at hand in tests.
func profiled(t *testing.T, dir string, start int) (url string, calls *[]string) {
	t.Helper()
	trace, err := os.ReadFile("../../testdata/own/vllm_eager_shapes.pt.trace.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	calls = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*calls = append(*calls, r.URL.Path)
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"data": [{"id": "acme/tiny"}]}`)
		case "/start_profile":
			w.WriteHeader(start)
		case "/stop_profile":
			for _, name := range []string{"rank0.1.pt.trace.json.gz", "host.async_llm.1.pt.trace.json.gz"} {
				if err := os.WriteFile(filepath.Join(dir, name), trace, 0o600); err != nil {
					t.Error(err)
				}
			}
		case "/v1/completions":
			fmt.Fprint(w, `{"choices": []}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

// commandLine runs a command line and returns its output and exit code.
func commandLine(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, log bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&log)
	if err := root.ExecuteContext(context.Background()); err != nil {
		code = codeOf(err)
		log.WriteString(err.Error())
	}
	return out.String(), log.String(), code
}

func TestCollectServer(t *testing.T) {
	dir := t.TempDir()
	url, calls := profiled(t, dir, 200)
	requests := filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(requests, []byte(`{"prompt": "a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	lake, record := filepath.Join(t.TempDir(), "lake"), filepath.Join(t.TempDir(), "window.json")
	address := strings.Replace(url, "http://", "http://user:secret@", 1) + "/v1"
	stdout, stderr, code := commandLine(t, "collect", "--server", address, "--trace-dir", dir, "--request-file", requests, "--convert", lake, "--record", record)
	var w serverWindow
	if err := json.Unmarshal([]byte(stdout), &w); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	if code != exitOK || !w.Started || *w.StopReason != "phase_end" || *w.Answered != 1 || len(w.Imports) != 1 || w.Imports[0].Report.Outcome != "ok" || w.Imports[0].Report.Run != "acme-tiny-eval" {
		t.Errorf("%d %s\n%s", code, stdout, stderr)
	}
	if strings.Contains(stdout+stderr, "secret") {
		t.Error("the password is shown")
	}
	if got := strings.Join(*calls, " "); got != "/v1/models /start_profile /v1/completions /stop_profile" {
		t.Error(got)
	}
	if b, err := os.ReadFile(record); err != nil || string(b) != stdout {
		t.Errorf("%v %s", err, b)
	}
	if n, err := filepath.Glob(filepath.Join(lake, "traces", "*.parquet")); err != nil || len(n) != 1 {
		t.Errorf("%v %v", n, err)
	}
}

func TestCollectServerMaxBytes(t *testing.T) {
	dir, lake := t.TempDir(), filepath.Join(t.TempDir(), "lake")
	url, _ := profiled(t, dir, 200)
	stdout, _, code := commandLine(t, "collect", "--server", url, "--trace-dir", dir, "--exec", "true", "--convert", lake, "--trace-max-bytes", "10")
	if code != exitOK || !strings.Contains(stdout, `"skipped":"max_bytes"`) {
		t.Errorf("%d %s", code, stdout)
	}
}

func TestCollectServerRejected(t *testing.T) {
	dir := t.TempDir()
	url, calls := profiled(t, dir, 404)
	stdout, stderr, code := commandLine(t, "collect", "--server", url, "--trace-dir", dir, "--duration", "60", "--server-model", "m")
	if code != exitFailed || !strings.Contains(stdout, `"start_outcome":"rejected"`) || !strings.Contains(stderr, "--profiler-config") || len(*calls) != 1 {
		t.Errorf("%d %v %s %s", code, *calls, stdout, stderr)
	}
}

func TestCollectServerUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--server", "http://h"},
		{"--server", "http://h", "--duration", "0"},
		{"--server", "http://h", "--duration", "1", "--exec", "true"},
		{"--server", "h:80", "--duration", "1"},
		{"--server", "http://h", "--duration", "1", "--trace-max-seconds", "-1"},
		{"--server", "http://h", "--duration", "1", "--convert", "lake"},
		{"--server", "http://h", "--duration", "x"},
		{"--trace-dir", "d"},
		{"--exec", "true"},
		{"--server", "http://h", "--duration", "1", "--jobs", "2"},
		{"--server", "http://h", "--duration", "1", "--model", "a/b", "--offline"},
		{"--server", "http://h", "--duration", "1", "--run", "r"},
		{"--server", "http://h", "--duration", "1", "--api-key-env", "TRACELAKE_NO_SUCH_KEY"},
	} {
		if _, stderr, code := commandLine(t, append([]string{"collect"}, args...)...); code != exitUsage {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
}
