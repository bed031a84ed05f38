package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestVLLM opens a window on a vLLM server that runs already, where the
// environment names one: starting one takes minutes.
//
//	vllm serve MODEL --profiler-config '{"profiler": "torch", "torch_profiler_dir": "/abs/traces"}'
//	TRACELAKE_VLLM_URL=http://127.0.0.1:8000 TRACELAKE_VLLM_TRACES=/abs/traces go test ./collect/server -run VLLM
func TestVLLM(t *testing.T) {
	url, dir := os.Getenv("TRACELAKE_VLLM_URL"), os.Getenv("TRACELAKE_VLLM_TRACES")
	if url == "" || dir == "" {
		const why = "NOT TESTED with vLLM: set TRACELAKE_VLLM_URL and TRACELAKE_VLLM_TRACES to a running server"
		fmt.Fprintln(os.Stderr, why)
		t.Skip(why)
	}
	c, err := NewControl(url, "", 2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	model := c.Model(context.Background())
	if model == "" {
		t.Fatal("the server names no model")
	}
	file := filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(file, []byte(`{"prompt": "t1 t2", "max_tokens": 3}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	requests, err := ReadRequests(file, model)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := Run(context.Background(), Config{Control: c, TraceDir: dir}, func(ctx context.Context, profiled bool) error {
		n, err := c.Send(ctx, requests, 1)
		if n != 1 || !profiled {
			t.Errorf("%d answers, profiled %v", n, profiled)
		}
		return err
	})
	if err != nil || rec.StartOutcome != Acknowledged || !rec.Stopped() || *rec.StopReason != PhaseEnd || len(rec.TraceFiles) == 0 || !rec.TraceFilesSettled {
		t.Errorf("%v %+v", err, rec)
	}
}
