package collect

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/collect/worker"
)

// tinyConfig is a model that needs no weights and no tokenizer to be traced.
const tinyConfig = `{"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":128,"hidden_size":32,"intermediate_size":64,
"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"max_position_embeddings":128,"bos_token_id":0,"eos_token_id":1}`

// The worker that is built in, with the real libraries.
func TestRealWorker(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir)
	o.workerDir, o.Python = "", hubPython(t)
	unpacked, err := worker.Unpack(filepath.Join(dir, "worker"))
	if err != nil {
		t.Fatal(err)
	}
	if !exists(filepath.Join(unpacked, worker.Module, "__main__.py")) {
		t.Skip("SKIPPED: the Python side of the collector is not there")
	}
	if out, err := exec.Command(o.Python, "-c", "import torch, transformers").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %s has no torch: %s", o.Python, out)
	}
	model := filepath.Join(dir, "tiny")
	if err := os.Mkdir(model, 0o755); err != nil {
		t.Fatal(err)
	}
	set(t, model, "config.json", tinyConfig)
	o.environ = with(o.environ, "OMP_NUM_THREADS=1", "XDG_CACHE_HOME="+dir)
	o.Models = []Model{{ID: "tiny", Path: model}}
	o.Tracers, o.DummyWeights, o.Mode, o.SequenceLength = []string{"meta_ops", "torch_dispatch"}, true, Train, 16
	o.Device, o.Timeout, o.StallTimeout = "cpu", 0, 0
	got, _ := batch(t, o)
	for _, tracer := range o.Tracers {
		r := got["tiny "+tracer]
		if r.Outcome != "ok" {
			t.Fatalf("%s: %s (%s)", tracer, r.Outcome, r.Message)
		}
		s := status(t, r.Dir)
		versions, _ := s.KeyParts["versions"].(map[string]any)
		if s.ModelID != "tiny" || s.Model != "LlamaForCausalLM" || s.PeakRSS == 0 || len(s.Phases) < 2 || versions["torch"] == nil || len(s.Tables) == 0 {
			t.Errorf("%s: %+v", tracer, s)
		}
		for _, table := range s.Tables {
			text, err := os.ReadFile(filepath.Join(r.Dir, table.Path))
			if err != nil {
				t.Fatal(err)
			}
			if n := int64(bytes.Count(text, []byte("\n"))) - 1; n != table.Rows || n < 1 {
				t.Errorf("%s: %s has %d rows, the status says %d", tracer, table.Path, n, table.Rows)
			}
			head, _, _ := strings.Cut(string(text), "\n")
			if !json.Valid([]byte(head)) {
				t.Errorf("%s: %s begins %.100q", tracer, table.Path, head)
			}
		}
	}
}
