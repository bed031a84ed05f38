//go:build cgo && !noduckdb

package convert

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/analyze/activity"
	"tracelake/analyze/execlog"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// TestExecutionLog checks that the log of vLLM's workers names the GPUs of a
// trace, that an option wins, and that processes without a worker are noted.
func TestExecutionLog(t *testing.T) {
	dir := t.TempDir()
	trace := func(name string, pids ...int) string {
		var events []string
		for i, pid := range pids {
			events = append(events,
				fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":%d,"tid":1,"ts":10,"dur":5,"args":{"correlation":%d}}`, pid, i+1),
				fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k","pid":%d,"tid":7,"ts":20,"dur":5,"args":{"correlation":%d,"device":%d,"stream":7}}`, i, i+1, i))
		}
		path := filepath.Join(dir, name)
		text := `{"baseTimeNanoseconds": 1700000000000000000, "host_name": "h", "traceEvents": [` + strings.Join(events, ",") + `]}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, two := trace("one.json", 10), trace("two.json", 10, 20)
	epoch := filepath.Join(dir, "log", "h-boot", "worker-10-1")
	if err := os.MkdirAll(epoch, 0o755); err != nil {
		t.Fatal(err)
	}
	line := `{"format":"stormlog.vllm_hook/1","epoch":"worker-10-1","seq":0,"kind":"hello","host":"h","cuda_ordinal":0,"device_uuid":"GPU-log","clock":{"wall_ns":1699999999000000000}}` + "\n"
	if err := os.WriteFile(filepath.Join(epoch, "000000.jsonl"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := execlog.Read(filepath.Join(dir, "log"))
	if err != nil || len(log.Workers) != 1 {
		t.Fatalf("%v %+v", err, log)
	}
	for _, c := range []struct {
		name, path string
		option     map[int64]string
		devices    string
		notice     string
	}{
		{"bound", one, nil, "0 GPU-log execution_log", ""},
		{"option", one, map[int64]string{0: "GPU-mine"}, "0 GPU-mine option", ""},
		{"several processes", two, nil, "0 <nil> <nil>\n1 <nil> <nil>", "1 partial: of 2 processes 1 are one worker of the execution log, 0 could be several, 1 are none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lake := filepath.Join(t.TempDir(), "lake")
			o := Options{Output: lake, Execution: log}
			if c.option != nil {
				o.DeviceUUIDs = func(string) map[int64]string { return c.option }
			}
			mustRun(t, o, c.path)
			expect(t, lake, "SELECT ordinal, uuid, uuid_source FROM devices ORDER BY ordinal", c.devices)
			expect(t, lake, "SELECT count, message FROM diagnostics WHERE code = 'execution_log'", c.notice)
			r, _, err := ImportActivities(context.Background(), c.path, link.Marks{}, activity.Options{
				RunID: "r", SessionID: "s", ExecutionLog: log, DeviceUUIDs: c.option,
			})
			if err != nil || r.Summary.ExecutionLog.Status != map[bool]string{true: execlog.Bound, false: execlog.Partial}[c.path == one] {
				t.Errorf("%v %+v", err, r.Summary.ExecutionLog)
			}
			var records strings.Builder
			if err := r.WriteJSONLines(&records); err != nil {
				t.Fatal(err)
			}
			// In a trace with several processes each record has that of its launch.
			want := "GPU-log"
			if c.option != nil {
				want = "GPU-mine"
			}
			if n := strings.Count(records.String(), `"`+want+`"`); n != 1 {
				t.Errorf("%s in %d records:\n%s", want, n, records.String())
			}
		})
	}
}

// TestOtherUUIDs checks that a trace is imported again where something else names
// its GPUs, and only then.
func TestOtherUUIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank0.json")
	text := `{"traceEvents": [{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":10,"tid":1,"ts":10,"dur":5,"args":{"correlation":1}},
		{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":20,"dur":5,"args":{"correlation":1,"device":0,"stream":7}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lake := filepath.Join(t.TempDir(), "lake")
	named := func(uuids map[int64]string) func(string) map[int64]string {
		return func(string) map[int64]string { return uuids }
	}
	worker := execlog.Worker{Epoch: "worker-10-1", Host: "h", PID: 10}
	alive := worker
	alive.LastSeenNS = schema.Some[int64](5)
	for _, c := range []struct {
		name string
		o    Options
		uuid string
	}{
		{"nothing", Options{}, "<nil>"},
		{"option", Options{DeviceUUIDs: named(map[int64]string{0: "GPU-a"})}, "GPU-a"},
		{"another option", Options{DeviceUUIDs: named(map[int64]string{0: "GPU-b"})}, "GPU-b"},
		{"another device, too", Options{DeviceUUIDs: named(map[int64]string{0: "GPU-b", 1: "GPU-c"})}, "GPU-b"},
		{"of another trace", Options{DeviceUUIDs: named(nil)}, "<nil>"},
		{"by process", Options{UUIDsByPID: map[int64]map[int64]string{10: {0: "GPU-d"}}}, "GPU-d"},
		{"by another process", Options{UUIDsByPID: map[int64]map[int64]string{11: {0: "GPU-d"}}}, "<nil>"},
		{"execution log", Options{Execution: &execlog.Log{Workers: []execlog.Worker{worker}}}, "<nil>"},
		{"longer execution log", Options{Execution: &execlog.Log{Workers: []execlog.Worker{alive}}}, "<nil>"},
	} {
		c.o.Output = lake
		for round, done := range []int{1, 0} {
			if _, sum := mustRun(t, c.o, path); sum.Done != done || sum.Skipped != 1-done {
				t.Errorf("%s, round %d: %+v", c.name, round, sum)
			}
		}
		expect(t, lake, "SELECT uuid FROM devices", c.uuid)
	}
	if o := (Options{UUIDsByPID: map[int64]map[int64]string{}, DeviceUUIDs: named(nil)}); o.keyFor(Input{Path: path}) != o.key() {
		t.Error("names of nothing are in the key")
	}
}
