package diff

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWelchLikeScipy compares p-values and intervals with SciPy's.
func TestWelchLikeScipy(t *testing.T) {
	python := os.Getenv("TRACELAKE_PYTHON")
	if python == "" {
		python = filepath.Join("..", "..", ".venv", "bin", "python")
	}
	if err := exec.Command(python, "-c", "import scipy").Run(); err != nil {
		t.Skipf("NOT COMPARED with SciPy: set TRACELAKE_PYTHON to a Python with it, or make .venv in the root of the repository (%v)", err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	type pair struct{ A, B []float64 }
	var pairs []pair
	for range 200 {
		var p pair
		shift, spread := r.NormFloat64()*2, math.Exp(r.NormFloat64())
		for range MinTraces + r.IntN(20) {
			p.A = append(p.A, 100+r.NormFloat64())
		}
		for range MinTraces + r.IntN(20) {
			p.B = append(p.B, 100+shift+spread*r.NormFloat64())
		}
		pairs = append(pairs, p)
	}
	in, err := json.Marshal(pairs)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "-c", `
import json, sys
from scipy.stats import ttest_ind
out = []
for p in json.load(sys.stdin):
    r = ttest_ind(p["B"], p["A"], equal_var=False)
    ci = r.confidence_interval(0.95)
    out.append({"Low": float(ci.low), "High": float(ci.high), "P": float(r.pvalue)})
json.dump(out, sys.stdout)
`)
	c.Stdin, c.Stderr = strings.NewReader(string(in)), os.Stderr
	text, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []Noise
	if err := json.Unmarshal(text, &want); err != nil || len(want) != len(pairs) {
		t.Fatal(err, len(want))
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-8*math.Max(1, math.Abs(b)) }
	for i, p := range pairs {
		got := welch(p.A, p.B)
		if !near(got.Low, want[i].Low) || !near(got.High, want[i].High) || !near(got.P, want[i].P) {
			t.Errorf("pair %d: %+v, SciPy has %+v", i, got, want[i])
		}
	}
}

func TestWelchWithoutSpread(t *testing.T) {
	same, more := []float64{2, 2, 2, 2, 2}, []float64{3, 3, 3, 3, 3}
	if n := welch(same, same); n != (Noise{0, 0, 1}) {
		t.Errorf("equal: %+v", n)
	}
	if n := welch(same, more); n != (Noise{1, 1, 0}) {
		t.Errorf("different: %+v", n)
	}
}

func TestParseGate(t *testing.T) {
	for text, want := range map[string]Gate{
		">5%": {">5%", "gpu", 5}, "iteration > 2.5 %": {"iteration > 2.5 %", "iteration", 2.5}, "kernel>0%": {"kernel>0%", "kernel", 0},
	} {
		if g, err := ParseGate(text); g != want || err != nil {
			t.Errorf("%q: %+v, %v", text, g, err)
		}
	}
	for _, text := range []string{"", "5%", ">5", ">-1%", "foo>5%", ">5%%", ">x%"} {
		if _, err := ParseGate(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestFewIterations: of six traces a side four have iterations, which are too few
// to judge these, and enough to judge the rest.
func TestFewIterations(t *testing.T) {
	side := func(ns int64) *Side {
		s := &Side{}
		for i := range int64(6) {
			one := totals{busyNS: 100 + i, summedNS: 100 + i, gpuEvents: 1}
			if i < 4 {
				one.iterations, one.iterationNS = 2, 2*ns+i
			}
			s.traces = append(s.traces, one)
		}
		return s
	}
	r := Compare(side(100), side(120))
	want := map[string]string{
		TotalBusy:      "6 and 6: no difference",
		TotalSummed:    "6 and 6: no difference",
		TotalIteration: "4 and 4: no verdict: 4 and 4 traces with iterations, 5 each needed",
	}
	for _, row := range r.Totals {
		if got := fmt.Sprintf("%d and %d: %s", row.TracesA, row.TracesB, row.Verdict); got != want[row.Name] {
			t.Errorf("%s: %s, want %s", row.Name, got, want[row.Name])
		}
	}
	for text, want := range map[string]string{
		"iteration>5%":  "[total iteration wall time: +19.85%, limit 5%; no verdict: 4 and 4 traces with iterations, 5 each needed]",
		"iteration>25%": "[]",
		"gpu>0%":        "[]",
	} {
		g, err := ParseGate(text)
		if err != nil {
			t.Fatal(err)
		}
		if broken, err := g.Check(r, 1); err != nil || fmt.Sprint(broken) != want {
			t.Errorf("%s: %v, %v, want %s", text, broken, err, want)
		}
	}

	// With no iterations on a side there is nothing to compare.
	b := side(120)
	for i := range b.traces {
		b.traces[i].iterations, b.traces[i].iterationNS = 0, 0
	}
	r = Compare(side(100), b)
	if row := r.Totals[2]; row.Verdict != "no verdict: 4 and 0 traces with iterations, 5 each needed" || !math.IsNaN(row.Percent) {
		t.Errorf("%+v", row)
	}
}
