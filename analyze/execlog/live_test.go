package execlog_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tracelake/analyze/execlog"
	"tracelake/analyze/link"
	"tracelake/kineto/compat"
)

const base = 1_700_000_000_000_000_000 // ns

// logFile is a file of a log, below its directory.
type logFiles map[string]string

func rec(epoch string, seq any, kind, more string) string {
	s := fmt.Sprintf(`{"format": "stormlog.vllm_hook/1", "epoch": %q, "seq": %v, "kind": %q`, epoch, seq, kind)
	if more != "" {
		s += ", " + more
	}
	return s + "}\n"
}

func hello(epoch string, seq int, host string, ordinal, uuid any, wall int64) string {
	more := fmt.Sprintf(`"host": %q, "cuda_ordinal": %v, "device_uuid": %v, "clock": {"wall_ns": %d}`, host, ordinal, uuid, wall)
	return rec(epoch, seq, "hello", more)
}

func beat(epoch string, seq int, kind string, wall int64) string {
	return rec(epoch, seq, kind, fmt.Sprintf(`"wall_ns": %d`, wall))
}

func writeAll(t *testing.T, dir string, files logFiles) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// writeTrace writes a trace whose events span 1000 s to 2000 s behind base.
func writeTrace(t *testing.T, path, host string, pids ...int) {
	t.Helper()
	var events []string
	for i, pid := range pids {
		events = append(events,
			fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":%d,"tid":1,"ts":1000000000.4565,"dur":5,"args":{"correlation":%d}}`, pid, i+1),
			fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1999999000.25,"dur":1000.5,"args":{"correlation":%d,"device":0,"stream":7}}`, i+1))
	}
	// The later call of a correlation ID replaces this one, times and all.
	if len(pids) > 0 {
		events = append([]string{`{"ph":"X","cat":"cuda_runtime","name":"x","pid":99,"tid":1,"ts":1,"dur":5,"args":{"correlation":1}}`}, events...)
	}
	text := fmt.Sprintf(`{"baseTimeNanoseconds": %d, %s"traceEvents": [%s]}`, base, host, strings.Join(events, ","))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func python(t *testing.T) string {
	t.Helper()
	for _, bin := range []string{os.Getenv("TRACELAKE_PYTHON"), filepath.Join("..", "..", ".venv", "bin", "python")} {
		if bin == "" {
			continue
		}
		out, err := exec.Command(bin, "-c", "import stormlog; print(stormlog.__version__)").Output()
		if err == nil && strings.TrimSpace(string(out)) == "0.4.3" {
			return bin
		}
	}
	const why = "NOT COMPARED with the stormlog package: set TRACELAKE_PYTHON to a Python that has stormlog 0.4.3"
	fmt.Fprintln(os.Stderr, why)
	t.Skip(why)
	return ""
}

const (
	start, end = base + 1_000_000_000_456, base + 2_000_000_000_000
	second     = 1_000_000_000
)

// logs are the logs of TestLive by name: those that show one rule each, and
// random ones.
func logs() map[string]logFiles {
	const a, b = "h-boot/worker-10-1/", "h-boot/worker-20-1/"
	const ea, eb = "worker-10-1", "worker-20-1"
	alive := func(e string, uuid string) string {
		return hello(e, 0, "h", 0, `"`+uuid+`"`, start-second) + beat(e, 1, "heartbeat", end)
	}
	out := map[string]logFiles{
		"both":               {a + "000000.jsonl": alive(ea, "GPU-a"), b + "000000.jsonl": alive(eb, "GPU-b")},
		"one":                {a + "000000.jsonl": alive(ea, "GPU-a")},
		"ambiguous":          {a + "000000.jsonl": alive(ea, "GPU-a"), "h-boot/worker-10-2/000000.jsonl": alive("worker-10-2", "GPU-c"), b + "000000.jsonl": alive(eb, "GPU-b")},
		"started late":       {a + "000000.jsonl": hello(ea, 0, "h", 0, `"GPU-a"`, start+1)},
		"started just then":  {a + "000000.jsonl": hello(ea, 0, "h", 0, `"GPU-a"`, start) + beat(ea, 1, "heartbeat", end)},
		"silent 30 s":        {a + "000000.jsonl": hello(ea, 0, "h", 0, `"GPU-a"`, start) + beat(ea, 1, "heartbeat", end-30*second+500)},
		"silent longer":      {a + "000000.jsonl": hello(ea, 0, "h", 0, `"GPU-a"`, start) + beat(ea, 1, "heartbeat", end-31*second)},
		"goodbye in between": {a + "000000.jsonl": hello(ea, 0, "h", 0, `"GPU-a"`, start) + beat(ea, 1, "goodbye", end-second)},
		"goodbye after":      {a + "000000.jsonl": hello(ea, 0, "h", 0, `"GPU-a"`, start) + beat(ea, 1, "goodbye", end+second)},
		"status only":        {a + "000000.jsonl": hello(ea, 0, "h", 0, `"GPU-a"`, start-second), a + "status.json": fmt.Sprintf(`{"wall_ns": %d, "last_seq": 7}`, int64(end))},
		"broken status":      {a + "000000.jsonl": alive(ea, "GPU-a"), a + "status.json": "{"},
		"no hello":           {"h/worker-10-1/000000.jsonl": beat(ea, 1, "heartbeat", end)},
		"nothing":            {"h/worker-10-1/000000.jsonl": ""},
		"goodbye alone":      {"h/worker-10-1/000000.jsonl": rec(ea, 0, "goodbye", "")},
		"no GPU":             {a + "000000.jsonl": hello(ea, 0, "h", "null", "null", start) + beat(ea, 1, "heartbeat", end)},
		"odd types":          {a + "000000.jsonl": hello(ea, 0, "h", "true", `"GPU-a"`, start) + rec(ea, 1, "heartbeat", fmt.Sprintf(`"wall_ns": %d.0`, int64(end)))},
		"empty texts":        {a + "000000.jsonl": hello(ea, 0, "", 0, `""`, start) + beat(ea, 1, "heartbeat", end)},
		"other host":         {a + "000000.jsonl": strings.ReplaceAll(alive(ea, "GPU-a"), `"h"`, `"other"`)},
		"engine":             {"h-boot/engine-10-1/000000.jsonl": alive("engine-10-1", "GPU-a")},
		"strange names":      {"h-boot/worker-x-1/000000.jsonl": "", "h-boot/worker-10-1x/000000.jsonl": "", "file": "", "h-boot/file": ""},
		"open segment":       {a + "000000.jsonl.part": alive(ea, "GPU-a") + `{"format": "stormlog.vl`},
		"sealed, cut":        {a + "000000.jsonl": alive(ea, "GPU-a") + `{"format": "stormlog.vl`},
		"both names":         {a + "000001.jsonl": hello(ea, 0, "h", 0, `"GPU-first"`, start) + beat(ea, 1, "heartbeat", end), a + "000001.jsonl.part": hello(ea, 0, "h", 0, `"GPU-second"`, start)},
		"two hellos":         {a + "000000.jsonl": hello(ea, 0, "h", 0, `"GPU-a"`, start) + hello(ea, 5, "h", 1, `"GPU-z"`, start) + beat(ea, 3, "heartbeat", end)},
		"sequence repeated":  {a + "000000.jsonl": hello(ea, 0, "h", 0, `"GPU-a"`, start) + rec(ea, 1, "scheduled", "") + beat(ea, 1, "heartbeat", end)},
		"bad lines": {a + "000000.jsonl": "no json\n[]\n\n" + `{"format": "other", "epoch": "worker-10-1", "seq": 0, "kind": "hello"}` + "\n" +
			rec("worker-9-1", 0, "hello", "") + rec(ea, "-1", "hello", "") + rec(ea, "true", "hello", "") + rec(ea, "1.0", "hello", "") + rec(ea, 7, "", "") + alive(ea, "GPU-a")},
		"other files": {a + "000000.jsonl": alive(ea, "GPU-a"), a + "0000.jsonl": hello(ea, 9, "h", 3, `"GPU-no"`, start), a + "key": "k", a + "000001.json": "{"},
		"empty log":   {"h-boot/x": ""},
	}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	for i := range 60 {
		f := logFiles{}
		for range 1 + r.IntN(4) {
			e := fmt.Sprintf("worker-%s-%d", pick("10", "20", "30"), r.IntN(3))
			at := func() int64 { return start + (r.Int64N(1400)-200)*second }
			var text string
			for seq := range r.IntN(5) {
				switch r.IntN(5) {
				case 0, 1:
					text += hello(e, seq, pick("h", "h", "other"), pick("0", "1", "null"), pick(`"GPU-a"`, `"GPU-b"`, "null"), start+(r.Int64N(20)-15)*second)
				case 2:
					text += beat(e, seq-r.IntN(2), "goodbye", at())
				default:
					text += beat(e, seq, "heartbeat", at())
				}
			}
			f["h/"+e+"/"+pick("000000.jsonl", "000001.jsonl.part")] = strings.ReplaceAll(text, `"seq": -1`, `"seq": 0`)
		}
		out[fmt.Sprintf("random %d", i)] = f
	}
	return out
}

// TestLive compares bindings with those of the stormlog package itself.
func TestLive(t *testing.T) {
	bin := python(t)
	dir := t.TempDir()
	traces := map[string]string{}
	for name, c := range map[string]struct {
		host string
		pids []int
	}{
		"two processes": {`"host_name": "h", `, []int{10, 20}}, "one process": {`"host_name": "h", `, []int{10}},
		"no host": {"", []int{10}}, "null host": {`"host_name": null, `, []int{10}}, "number for a host": {`"host_name": 7, `, []int{10}},
		"empty": {`"host_name": "h", `, nil},
	} {
		traces[name] = filepath.Join(dir, name+".json")
		writeTrace(t, traces[name], c.host, c.pids...)
	}
	type request struct {
		Log   string `json:"log"`
		Trace string `json:"trace"`
	}
	var in bytes.Buffer
	var asked []request
	for name, files := range logs() {
		log := filepath.Join(dir, "logs", name)
		writeAll(t, log, files)
		for _, path := range traces {
			asked = append(asked, request{log, path})
			_ = json.NewEncoder(&in).Encode(asked[len(asked)-1])
		}
	}
	cmd := exec.Command(bin, "testdata/reference.py")
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(bytes.NewReader(out))
	statuses := map[string]int{}
	for _, q := range asked {
		if !answers.Scan() {
			t.Fatal("the reference ended early")
		}
		log, err := execlog.Read(q.Log)
		if err != nil {
			t.Fatal(err)
		}
		trace, err := compat.Load(q.Trace)
		if err != nil {
			t.Fatal(err)
		}
		got := log.Bind(trace, link.Resolve(trace, link.Options{}))
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(text, &a) != nil || json.Unmarshal(answers.Bytes(), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s, %s:\ngot       %s\nreference %s", filepath.Base(q.Log), filepath.Base(q.Trace), text, answers.Text())
		}
		statuses[got.Status]++
	}
	t.Logf("%d bindings compared: %v", len(asked), statuses)
	for _, s := range []string{execlog.Bound, execlog.Partial, execlog.None, execlog.NoHost, execlog.NoWindow} {
		if statuses[s] == 0 {
			t.Errorf("no case is %s", s)
		}
	}
}

func TestNotADirectory(t *testing.T) {
	if _, err := execlog.Read(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a directory that is not there")
	}
	if _, err := execlog.Read("live_test.go"); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("%v", err)
	}
}

// TestNotes checks that what cannot be read is said, with file and line.
func TestNotes(t *testing.T) {
	dir := t.TempDir()
	writeAll(t, dir, logs()["bad lines"])
	l, err := execlog.Read(dir)
	if err != nil || l.Bad != 8 || !strings.Contains(l.Notes[0], "000000.jsonl:1: no JSON object") {
		t.Errorf("%v %+v", err, l)
	}
}
