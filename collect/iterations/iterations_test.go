package iterations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tracelake/convert"
)

// torch returns a Python that can import PyTorch.
func torch(t *testing.T) string {
	t.Helper()
	for _, bin := range []string{os.Getenv("TRACELAKE_TORCH_PYTHON"), os.Getenv("TRACELAKE_PYTHON"), filepath.Join("..", "..", ".venv", "bin", "python")} {
		if bin != "" && exec.Command(bin, "-c", "import torch").Run() == nil {
			return bin
		}
	}
	const why = "NOT TESTED with PyTorch: set TRACELAKE_TORCH_PYTHON to a Python that has it"
	fmt.Fprintln(os.Stderr, why)
	t.Skip(why)
	return ""
}

const program = `
import sys
import torch
from torch.profiler import ProfilerActivity, profile
from tracelake_iterations import iteration, marked, range_name

for bad in [("", "p"), (1, ""), (1, "a/b"), ("a\nb", "p")]:
    try:
        range_name(*bad)
        sys.exit(f"{bad} was accepted")
    except ValueError:
        pass

a = torch.randn(32, 32)
serve = marked(lambda x: x @ x, producer="serve")
assert serve.__name__ == "<lambda>"
with profile(activities=[ProfilerActivity.CPU]) as prof:
    for step in range(3):
        with iteration(step, producer="train", nvtx=True):
            (a @ a).relu()
    serve(a)
    serve(a)
    try:
        with iteration("failing/7", producer="train"):
            raise KeyError
    except KeyError:
        pass
prof.export_chrome_trace(sys.argv[1])
`

// TestWithPyTorch profiles marked iterations on the CPU with the installed
// module and checks that they are recognised.
func TestWithPyTorch(t *testing.T) {
	bin := torch(t)
	dir := t.TempDir()
	if _, err := Install(dir, false); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(dir, "t.json")
	cmd := exec.Command(bin, "-c", program, trace)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found, err := convert.Discover([]string{trace})
	if err != nil {
		t.Fatal(err)
	}
	o := convert.Options{Output: filepath.Join(dir, "lake"), Writer: "test"}
	sum, err := convert.Run(context.Background(), found, o, func(r convert.Report) {
		if r.Outcome != "ok" || r.Iterations != 6 {
			t.Errorf("%s: %d iterations", r.Outcome, r.Iterations)
		}
	})
	if err != nil || sum.OK != 1 {
		t.Errorf("%v %+v", err, sum)
	}
	tr, _, err := convert.Load(context.Background(), trace, o.Marks)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, s := range tr.Spans {
		got[s.Ref.Producer+" "+s.Ref.ID]++
	}
	for _, want := range []string{"train 0", "train 1", "train 2", "train failing/7", "serve 0", "serve 1"} {
		if got[want] != 1 {
			t.Errorf("%s: %d spans of %v", want, got[want], got)
		}
	}
}

func TestInstall(t *testing.T) {
	dir := t.TempDir()
	path, err := Install(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, false); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, false); !errors.Is(err, ErrExists) {
		t.Errorf("%v", err)
	}
	if _, err := Install(dir, true); err != nil {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != string(Source) {
		t.Errorf("%v %q", err, b)
	}
	if _, err := Install(filepath.Join(dir, "missing"), false); err == nil {
		t.Error("installed into a directory that is not there")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
