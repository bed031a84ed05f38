package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lakeOf imports one trace of the given events.
func lakeOf(t *testing.T, events ...string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.json")
	if err := os.WriteFile(path, []byte(`{"traceEvents":[`+strings.Join(events, ",")+`]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	lake := filepath.Join(dir, "lake")
	if _, sum := mustRun(t, Options{Output: lake}, path); sum.OK != 1 {
		t.Fatalf("%+v", sum)
	}
	return lake
}

// TestOldSteps: the marks of the profiler had the category of operators until 2021.
func TestOldSteps(t *testing.T) {
	lake := lakeOf(
		t,
		`{"ph":"X","cat":"Operator","name":"ProfilerStep#7","pid":1,"tid":"2","ts":10,"dur":10,"args":{"Input dims":[]}}`,
		`{"ph":"X","cat":"Operator","name":"ProfilerStep","pid":1,"tid":"2","ts":10,"dur":10}`,
		`{"ph":"X","cat":"Operator","name":"aten::mm","pid":1,"tid":"2","ts":11,"dur":3}`,
		`{"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":1,"tid":"2","ts":12,"dur":1,"args":{"correlation":5}}`,
		`{"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 7","ts":14,"dur":2,"args":{"device":0,"stream":7,"correlation":5}}`,
	)
	expect(t, lake, "SELECT iteration_producer, iteration_id, link_status FROM gpu_events", "ProfilerStep 7 linked")
	expect(t, lake, "SELECT name, iteration_id, args_json FROM ranges", `ProfilerStep#7 7 {"Input Dims":[]}`)
	expect(t, lake, "SELECT string_agg(name, ' ' ORDER BY name) FROM cpu_events", "ProfilerStep aten::mm")
}

// TestTextProcesses: processes and threads whose IDs are text, as merged files have
// them, are told apart like those with numbers.
func TestTextProcesses(t *testing.T) {
	for _, ids := range [][2]string{{`1`, `2`}, {`"rank 0: 1"`, `"rank 1: 1"`}} {
		var events []string
		for i, pid := range ids {
			events = append(
				events,
				fmt.Sprintf(`{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":%s,"tid":"main","ts":10,"dur":20}`, i+3, pid),
				fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":%s,"tid":"main","ts":12,"dur":1,"args":{"correlation":9}}`, pid),
				fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":%s,"tid":"main","ts":14,"dur":1,"args":{"correlation":%d}}`, pid, i+1),
				fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":7,"ts":%d,"dur":1,"args":{"device":0,"stream":7,"correlation":%d}}`, i, 20+i, i+1),
			)
		}
		events = append(events, `{"ph":"X","cat":"kernel","name":"shared","pid":0,"tid":7,"ts":25,"dur":1,"args":{"device":0,"stream":7,"correlation":9}}`)
		lake := lakeOf(t, events...)
		expect(t, lake, "SELECT name, link_status, coalesce(iteration_id, '-') FROM gpu_events ORDER BY name", "k0 linked 3\nk1 linked 4\nshared ambiguous -")
		expect(t, lake, "SELECT count(*) FROM diagnostics WHERE code IN ('several_processes', 'ambiguous_launch')", "2")
		expect(t, lake, "SELECT count(*) FROM activities WHERE pid < 0", "0")
	}
}
