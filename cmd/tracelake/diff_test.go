//go:build cgo && !noduckdb

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stepTrace writes a trace with one iteration and kernels of the given
// durations in µs, one behind the other, each with its launch and operator.
func stepTrace(t *testing.T, path string, kernels map[string][]int) {
	t.Helper()
	var events []map[string]any
	add := func(cat, name string, ts, dur, tid int, args map[string]any) {
		events = append(events, map[string]any{"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args})
	}
	at, n := 1000, 1
	for _, name := range []string{"gemm", "relu", "old", "new"} {
		for _, dur := range kernels[name] {
			add("cpu_op", "aten::"+name, at, 5, 1, map[string]any{"External id": n, "Input Dims": []any{[]int{4, 4}}})
			add("cuda_runtime", "cudaLaunchKernel", at+1, 2, 1, map[string]any{"correlation": n, "External id": n})
			events = append(events, map[string]any{
				"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 10, "dur": dur,
				"args": map[string]any{"device": 0, "stream": 7, "correlation": n, "External id": n, "grid": []int{8, 1, 1}, "block": []int{64, 1, 1}},
			})
			at += 20 + dur
			n++
		}
	}
	add("user_annotation", "ProfilerStep#1", 990, at-990, 1, map[string]any{})
	data, err := json.Marshal(map[string]any{"schemaVersion": 1, "traceEvents": events})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func diffRows(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for line := range strings.Lines(text) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out[row["kind"].(string)+" "+row["name"].(string)] = row
	}
	return out
}

func TestDiffKnownDeltas(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	stepTrace(t, a, map[string][]int{"gemm": {100, 100}, "relu": {50}, "old": {10}})
	stepTrace(t, b, map[string][]int{"gemm": {130, 110}, "relu": {40}, "new": {20}})
	stdout, stderr, code := commandLine(t, "diff", a, b, "--format", "json")
	if code != 0 || !strings.Contains(stderr, "no verdict: 1 and 1 traces") {
		t.Fatalf("%d %s", code, stderr)
	}
	rows := diffRows(t, stdout)
	for key, want := range map[string][]any{ // count_a, count_b, total_a, total_b, mean_a, mean_b, delta, pct
		"total GPU busy":            {4.0, 4.0, 260.0, 300.0, 65.0, 75.0, 40.0, 15.38},
		"total GPU time, summed":    {4.0, 4.0, 260.0, 300.0, 65.0, 75.0, 40.0, 15.38},
		"total iteration wall time": {1.0, 1.0, 350.0, 390.0, 350.0, 390.0, 40.0, 11.43},
		"kernel gemm":               {2.0, 2.0, 200.0, 240.0, 100.0, 120.0, 40.0, 20.0},
		"kernel relu":               {1.0, 1.0, 50.0, 40.0, 50.0, 40.0, -10.0, -20.0},
		"kernel old":                {1.0, 0.0, 10.0, 0.0, 10.0, nil, -10.0, -100.0},
		"kernel new":                {0.0, 1.0, 0.0, 20.0, nil, 20.0, 20.0, nil},
	} {
		row := rows[key]
		if row == nil {
			t.Errorf("no row %s", key)
			continue
		}
		got := []any{row["count_a"], row["count_b"], row["total_a_us"], row["total_b_us"], row["mean_a_us"], row["mean_b_us"], row["delta_us"], row["delta_pct"]}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	if rows["kernel new"]["verdict"] != "only in B" || rows["kernel old"]["verdict"] != "only in A" ||
		!strings.HasPrefix(rows["kernel gemm"]["verdict"].(string), "no verdict") {
		t.Error(stdout)
	}
	if lines := strings.Split(stdout, "\n"); !strings.Contains(lines[3], `"gemm"`) || !strings.Contains(lines[4], `"new"`) {
		t.Errorf("regressions are not first:\n%s", stdout)
	}

	ops, _, code := commandLine(t, "diff", a, b, "--by", "ops", "--format", "json")
	rows = diffRows(t, ops)
	if code != 0 || rows["op_gpu aten::gemm"]["delta_us"] != 40.0 || rows["op_cpu aten::gemm"]["delta_us"] != 0.0 ||
		rows["op_cpu aten::gemm"]["total_a_us"] != 10.0 || rows["op_cpu aten::gemm"]["shape"] != "[[4,4]]" {
		t.Errorf("%d\n%s", code, ops)
	}
}

func TestDiffGate(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	stepTrace(t, a, map[string][]int{"gemm": {1000}, "relu": {5}})
	stepTrace(t, b, map[string][]int{"gemm": {1060}, "relu": {10}})
	cpu := filepath.Join(dir, "cpu.json")
	if err := os.WriteFile(cpu, []byte(`{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":1,"dur":2}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
	}{
		{a + " " + b + " --fail-on >5%", 4},
		{a + " " + b + " --fail-on >7%", 0},
		{a + " " + b + " --fail-on >7% --fail-on iteration>5%", 4},
		{a + " " + b + " --fail-on kernel>7%", 0}, // relu is too small to count
		{a + " " + b + " --fail-on kernel>7% --min-share 0", 4},
		{b + " " + a + " --fail-on >0% --fail-on kernel>0% --fail-on iteration>0% --min-share 0", 0},
		{a + " " + a + " --fail-on >0% --fail-on kernel>0% --fail-on iteration>0% --fail-on summed>0% --min-share 0", 0},
		{a + " " + b + " --fail-on 5%", 2},
		{a + " " + b + " --by layers", 2},
		{a + " " + b + " --format parquet", 2},
		{a, 2},
		{cpu + " " + cpu + " --fail-on >5%", 1},
		{a + " " + filepath.Join(dir, "none.json"), 5},
	} {
		stdout, stderr, code := commandLine(t, append([]string{"diff"}, strings.Fields(c.args)...)...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
	}
}

func TestDiffNoise(t *testing.T) {
	dir := t.TempDir()
	lake := filepath.Join(dir, "lake")
	for i := range 6 {
		stepTrace(t, filepath.Join(dir, "t", "before", fmt.Sprintf("%d.json", i)), map[string][]int{"gemm": {1000 + i}, "relu": {100 + 37*i%50}})
		stepTrace(t, filepath.Join(dir, "t", "after", fmt.Sprintf("%d.json", i)), map[string][]int{"gemm": {1100 + i}, "relu": {105 + 41*i%50}})
	}
	if _, stderr, code := commandLine(t, "convert", filepath.Join(dir, "t"), "-o", lake); code != 0 {
		t.Fatal(stderr)
	}
	stdout, stderr, code := commandLine(t, "diff", lake+":run=before", lake+":run=after", "--format", "json", "--fail-on", "kernel>3%")
	rows := diffRows(t, stdout)
	gemm, relu := rows["kernel gemm"], rows["kernel relu"]
	if gemm["verdict"] != "slower" || relu["verdict"] != "no difference" {
		t.Errorf("gemm %v, relu %v", gemm, relu)
	}
	if low, high := gemm["ci_low_us"].(float64), gemm["ci_high_us"].(float64); low > 100 || high < 100 || low < 90 || high > 110 {
		t.Errorf("interval %v to %v", low, high)
	}
	if code != 4 || !strings.Contains(stderr, "gemm") || strings.Contains(stderr, "relu") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	// A directory is a side too; the same traces on both sides differ in nothing.
	stdout, _, code = commandLine(t, "diff", lake+":run=before", filepath.Join(dir, "t", "before"), "--format", "json", "--fail-on", ">0%")
	if code != 0 || strings.Contains(stdout, "slower") || !strings.Contains(stdout, `"p_value":1`) {
		t.Errorf("%d %s", code, stdout)
	}
}

func TestParseSide(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "x:run=1")
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"lake":                       "lake map[]",
		"/a:b/lake:run=a:b,c,rank=3": "/a:b/lake map[rank:3 run:a:b,c]",
		"lake:trace=00ff":            "lake map[trace:00ff]",
		"C:lake":                     "C:lake map[]",
		odd:                          odd + " map[]",
	} {
		path, vars, err := parseSide(text)
		if got := fmt.Sprint(path, " ", vars); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if _, _, err := parseSide("lake:rank=x"); codeOf(err) != exitUsage {
		t.Error(err)
	}
}
