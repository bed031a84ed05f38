package collect

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tracelake/collect/isolate"
)

// runEnv makes the test binary run a batch, to be killed itself.
const runEnv = "COLLECT_TEST_RUN"

// fetchEnv makes it fetch and trace one model of the hub.
const fetchEnv = "COLLECT_TEST_FETCH"

func TestMain(m *testing.M) {
	isolate.MaybeGuard()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // guards end at once
	if dir := os.Getenv(runEnv); dir != "" {
		o := standin(nil, dir)
		o.Models = []Model{{ID: "m", Path: filepath.Join(dir, "models", "m0")}}
		o.Tracers = []string{"flaky", "escape"}
		o.StallTimeout = 0
		_, err := Run(context.Background(), o)
		fmt.Println(err)
		os.Exit(0)
	}
	if dir := os.Getenv(fetchEnv); dir != "" {
		o := standin(nil, dir)
		o.environ = os.Environ()
		o.Models, o.Tracers = []Model{{ID: "org/a"}}, []string{"good"}
		o.HFEndpoint, o.Python, o.OutputDir = os.Getenv("FETCH_HUB"), os.Getenv("FETCH_PYTHON"), filepath.Join(dir, os.Getenv("FETCH_OUT"))
		sum, err := Run(context.Background(), o)
		if err != nil || sum.Failed > 0 {
			fmt.Println(sum, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func python() string {
	if p := os.Getenv("TRACELAKE_PYTHON"); p != "" {
		return p
	}
	return "python3"
}

// standin are options of a run with the scripted worker, whose controls and
// results lie below dir.
func standin(t testing.TB, dir string, models ...string) Options {
	if t != nil {
		t.Helper()
		if runtime.GOOS != "linux" {
			t.Skip("isolation is tested on Linux")
		}
	}
	script, _ := filepath.Abs("testdata/standin")
	o := Options{
		Framework: HuggingFace, Mode: Eval, OutputDir: filepath.Join(dir, "out"), Device: "auto", DType: "auto",
		TensorParallel: 1, BatchSize: 1, DownloadWorkers: 2, Python: python(), workerDir: script,
		Timeout: time.Minute, StallTimeout: 20 * time.Second,
		environ: append(os.Environ(), "STANDIN_DIR="+dir, "HF_HOME="+filepath.Join(dir, "hf")),
	}
	for _, m := range models {
		o.Models = append(o.Models, Model{ID: m, Path: makeModel(t, filepath.Join(dir, "models", m))})
	}
	return o
}

func set(t testing.TB, dir, name, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}

// makeModel writes a whole, tiny model.
func makeModel(t testing.TB, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	set(t, dir, "config.json", `{"architectures":["LlamaForCausalLM"],"model_type":"llama"}`)
	set(t, dir, "tokenizer.json", `{}`)
	set(t, dir, "model.safetensors", string(safetensors()))
	return dir
}

func safetensors() []byte {
	const header = `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), make([]byte, 8)...)
}

// batch runs and returns outcomes by "model tracer".
func batch(t *testing.T, o Options) (map[string]Report, Summary) {
	t.Helper()
	got := map[string]Report{}
	o.Report = func(r Report) {
		key := filepath.Base(r.Model) + " " + r.Tracer
		if _, twice := got[key]; twice {
			t.Errorf("%s is reported twice", key)
		}
		got[key] = r
	}
	sum, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return got, sum
}

// mustBatch is batch for who wants the reports alone.
func mustBatch(t *testing.T, o Options) map[string]Report {
	t.Helper()
	got, _ := batch(t, o)
	return got
}

func outcomes(got map[string]Report) string {
	out := make([]string, 0, len(got))
	for _, k := range slices.Sorted(maps.Keys(got)) {
		out = append(out, k+" "+got[k].Outcome)
	}
	return strings.Join(out, ", ")
}

func status(t *testing.T, dir string) *Status {
	t.Helper()
	s, err := ReadStatus(filepath.Join(dir, StatusFile))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// survivors are living processes of a test, told by their environment.
func survivors(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		env, err := os.ReadFile(d + "/environ")
		if err == nil && bytes.Contains(env, []byte("STANDIN_DIR="+dir+"\x00")) {
			stat, _ := os.ReadFile(d + "/stat")
			if i := bytes.LastIndexByte(stat, ')'); i > 0 && !bytes.HasPrefix(stat[i+1:], []byte(" Z")) {
				out = append(out, d)
			}
		}
	}
	return out
}

var faults = map[string]string{
	"good": "ok", "segv": "segv", "abort": "abort", "hang": "stall", "allocate": "oom_host", "escape": "ok", "flood": "ok",
	"device_full": "oom_device", "closed": "no_result", "liar": "tracer", "outsider": "tracer",
}

// Every way to end, three models, two jobs at a time: each is classified, none
// costs another, and nothing stays.
func TestBatchOfFaults(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m0", "m1", "m2")
	o.Tracers = slices.Sorted(maps.Keys(faults))
	o.Jobs, o.MaxRSS, o.StallTimeout = 2, 300<<20, 8*time.Second
	got, sum := batch(t, o)
	for _, m := range []string{"m0", "m1", "m2"} {
		for tracer, want := range faults {
			r := got[m+" "+tracer]
			if r.Outcome != want {
				t.Errorf("%s %s: %s (%s), want %s", m, tracer, r.Outcome, r.Message, want)
			}
			s := status(t, r.Dir)
			if s.Outcome != want || s.Success != (want == "ok") || s.Attempt != 1 || s.Schema != 2 || s.Tracer != tracer || s.ModelID != m || s.Device != "cpu" {
				t.Errorf("%s: status %+v", tracer, s)
			}
			log, err := os.ReadFile(filepath.Join(r.Dir, LogFile))
			if err != nil || !bytes.Contains(log, []byte("output of "+tracer)) {
				t.Errorf("%s: log %.100q, %v", tracer, log, err)
			}
			entries, _ := os.ReadDir(r.Dir)
			if want != "ok" && len(entries) != 2 {
				t.Errorf("%s: a failed job left %v", tracer, entries)
			}
		}
	}
	if sum.Jobs != 33 || sum.Failed != 24 || sum.Classes["ok"] != 9 || sum.Classes["segv"] != 3 {
		t.Errorf("%+v", sum)
	}
	if left := survivors(t, dir); len(left) > 0 {
		t.Errorf("%v survive", left)
	}
	if hidden, _ := filepath.Glob(filepath.Join(o.OutputDir, "*/*/*/.*.attempt")); len(hidden) > 0 {
		t.Errorf("%v", hidden)
	}
	if s := status(t, got["m0 flood"].Dir); s.LogCut == 0 || s.LogBytes < 12<<20 {
		t.Errorf("flood: %d bytes, %d cut", s.LogBytes, s.LogCut)
	}
	if s := status(t, got["m0 escape"].Dir); s.Leftovers != 1 {
		t.Errorf("escape: %d leftovers", s.Leftovers)
	}

	// Once more: what succeeded is there, what failed is tried again.
	o.Models = o.Models[:1]
	got, _ = batch(t, o)
	for tracer, want := range faults {
		r := got["m0 "+tracer]
		if want == "ok" {
			want = Done
		} else if r.Attempt != 2 {
			t.Errorf("%s: attempt %d", tracer, r.Attempt)
		}
		if r.Outcome != want {
			t.Errorf("%s: %s, want %s", tracer, r.Outcome, want)
		}
	}
	if old := filepath.Join(got["m0 abort"].Dir, attemptLog(1)); !exists(old) {
		t.Errorf("%s: the log of the first attempt is gone", old)
	}
}

func runs(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil {
		return 0
	}
	return bytes.Count(text, []byte("\n"))
}

func TestBypass(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers = []string{"good"}
	want := 0
	step := func(what string, runsAgain bool) Report {
		t.Helper()
		got, _ := batch(t, o)
		r := got["m good"]
		outcome := Done
		if runsAgain {
			want++
			outcome = "ok"
		}
		if r.Outcome != outcome || runs(t, dir) != want {
			t.Errorf("%s: %s (%s), %d runs, want %s and %d", what, r.Outcome, r.Message, runs(t, dir), outcome, want)
		}
		return r
	}
	r := step("first", true)
	step("again", false)
	result := filepath.Join(r.Dir, "out", "result.json")
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	// Another modification time alone is no change.
	if err := os.Chtimes(result, time.Now(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	step("touched", false)
	set(t, filepath.Dir(result), "result.json", strings.Repeat("x", len(text)))
	step("changed artefact", true)
	set(t, filepath.Dir(result), "result.json", "x")
	step("cut artefact", true)
	os.Remove(result)
	step("lost artefact", true)
	o.BatchSize = 2
	step("other batch size", true)
	o.Prompts = []string{"a"}
	step("other prompt", true)
	o.TracerOptions = map[string]map[string]any{"good": {"stacks": true}}
	step("other options of the tracer", true)
	step("the same", false)
	set(t, dir, "torch", "3.0.0")
	step("another torch", true)
	set(t, dir, "version", "2")
	step("another version of the tracer", true)
	set(t, o.Models[0].Path, "config.json", `{"architectures":["LlamaForCausalLM"],"x":1}`)
	step("another model in the same place", true)
	o.Force = true
	step("force", true)
	o.Force = false
	set(t, r.Dir, StatusFile, "{")
	step("broken status file", true)
	step("at last", false)
}

func TestForceKeepsGoodResult(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers = []string{"flaky"}
	got, _ := batch(t, o)
	r := got["m flaky"]
	before := status(t, r.Dir)

	set(t, dir, "flaky", "1")
	o.Force = true
	if got, _ = batch(t, o); got["m flaky"].Outcome != "abort" {
		t.Fatal(outcomes(got))
	}
	after := status(t, r.Dir)
	if !after.Success || after.Key != before.Key || verify(r.Dir, after) != "" {
		t.Errorf("the good result is gone: %+v", after)
	}
	failed, err := ReadStatus(filepath.Join(r.Dir, failedFile))
	if err != nil || failed.Outcome != "abort" || failed.Success || failed.Log != failedLog || !exists(filepath.Join(r.Dir, failedLog)) {
		t.Errorf("%+v, %v", failed, err)
	}
	o.Force = false
	if got, _ = batch(t, o); got["m flaky"].Outcome != Done {
		t.Error(outcomes(got))
	}
	o.Force = true
	if got, _ = batch(t, o); got["m flaky"].Outcome != "ok" || exists(filepath.Join(r.Dir, failedFile)) {
		t.Error(outcomes(got))
	}
}

func TestRetry(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers, o.Retry = []string{"flaky", "device_full"}, 2
	set(t, dir, "flaky", "2")
	got, _ := batch(t, o)
	if r := got["m flaky"]; r.Outcome != "ok" || r.Attempt != 3 {
		t.Errorf("%s, attempt %d", r.Outcome, r.Attempt)
	}
	if r := got["m device_full"]; r.Outcome != "oom_device" || r.Attempt != 3 {
		t.Errorf("%s, attempt %d", r.Outcome, r.Attempt)
	}
	// An error of the tracer's own ends alike every time.
	set(t, dir, "first", "fail")
	o.Tracers = []string{"first"}
	if r := mustBatch(t, o)["m first"]; r.Outcome != "tracer" || r.Attempt != 1 {
		t.Errorf("%s, attempt %d", r.Outcome, r.Attempt)
	}
}

// TestRefusedResult: a result that could not be imported is in place, is not
// made again, and stays whatever later attempts do.
func TestRefusedResult(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers, o.Retry = []string{"flaky"}, 1
	calls := 0
	o.OnFinished = func(Job, *Status) error {
		calls++
		set(t, dir, "flaky", "9") // another attempt would crash
		return errors.New("the dataset is full")
	}
	r := mustBatch(t, o)["m flaky"]
	if r.Outcome != "convert" || r.Message != "the dataset is full" || r.Attempt != 1 || calls != 1 {
		t.Errorf("%+v, %d calls", r, calls)
	}
	whole := func() {
		t.Helper()
		if s := status(t, r.Dir); !s.Success || s.Outcome != "ok" || !exists(filepath.Join(r.Dir, "out", "result.json")) {
			t.Errorf("%+v", s)
		}
	}
	whole()
	o.Force = true
	if again := mustBatch(t, o)["m flaky"]; again.Outcome != "abort" {
		t.Errorf("%+v", again)
	}
	whole()
}

// TestLinks: what a link leads to tells whether a job is done.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir)
	link := filepath.Join(dir, "current")
	o.Models, o.Tracers = []Model{{ID: "current", Path: link}}, []string{"good"}
	for i, want := range []string{"ok", "done", "ok"} {
		if i != 1 {
			to := makeModel(t, filepath.Join(dir, fmt.Sprint("v", i)))
			set(t, to, "config.json", fmt.Sprintf(`{"architectures":["LlamaForCausalLM"],"hidden_size":%d}`, i))
			os.Remove(link)
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
		}
		if r := mustBatch(t, o)["current good"]; r.Outcome != want {
			t.Errorf("%d: %s, want %s", i, r.Outcome, want)
		}
	}
	text, code := filepath.Join(dir, "real.py"), filepath.Join(dir, "tracer.py")
	if err := os.Symlink("real.py", code); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range []string{"a = 1", "b = 22"} {
		set(t, dir, "real.py", s)
		for _, path := range []string{text, code, dir} {
			sum, err := sourceDigest(path)
			if err != nil {
				t.Fatal(err)
			}
			seen[sum] = true
		}
	}
	if len(seen) != 4 { // a link is as good as its file
		t.Errorf("%d digests of two contents of a file and of a directory", len(seen))
	}
}

func TestExclusiveGroup(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers = []string{"first", "second"}
	set(t, dir, "first", "fail")
	got, _ := batch(t, o)
	if s := outcomes(got); s != "m first tracer, m second ok" {
		t.Error(s)
	}
	set(t, dir, "first", "")
	got, _ = batch(t, o)
	if s := outcomes(got); s != "m first skipped, m second done" {
		t.Error(s)
	}
	o.OutputDir = filepath.Join(dir, "other")
	got, _ = batch(t, o)
	if s := outcomes(got); s != "m first ok, m second skipped" {
		t.Error(s)
	}
	if exists(got["m second"].Dir) {
		t.Error("the skipped tracer has a directory")
	}
}

// Jobs of two GPUs each never share one, whatever their number.
func TestGPUSlots(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m0", "m1", "m2", "m3", "m4")
	set(t, dir, "gpus", "5")
	o.Framework, o.TensorParallel, o.Tracers, o.Device, o.Jobs = VLLM, 2, []string{"slot"}, "cuda", 4
	got, sum := batch(t, o)
	if sum.Classes["ok"] != 5 {
		t.Errorf("%+v", got)
	}
	for _, r := range got {
		if s := status(t, r.Dir); len(s.GPUs) != 2 || s.Device != "cuda" {
			t.Errorf("%v on %s", s.GPUs, s.Device)
		}
	}
	o.Force, o.GPUs = true, []string{"GPU-a", "GPU-b"}
	got, _ = batch(t, o)
	if s := status(t, got["m0 slot"].Dir); !slices.Equal(s.GPUs, []string{"GPU-a", "GPU-b"}) {
		t.Errorf("%v", s.GPUs)
	}
	o.TensorParallel = 3
	var u *UsageError
	if _, err := Run(t.Context(), o); !errors.As(err, &u) {
		t.Errorf("three of two GPUs: %v", err)
	}
}

// TestVisibleGPUs: a number is what torch calls the GPU, which
// CUDA_VISIBLE_DEVICES shifts.
func TestVisibleGPUs(t *testing.T) {
	dir := t.TempDir()
	set(t, dir, "gpus", "2")
	o := standin(t, dir, "m")
	o.environ = append(o.environ, "CUDA_VISIBLE_DEVICES=6,GPU-b")
	o.Tracers, o.Force = []string{"environment"}, true
	for _, c := range []struct {
		device string
		gpus   []string
		want   string
	}{{"cuda", nil, "6"}, {"cuda:1", nil, "GPU-b"}, {"cuda", []string{"1"}, "GPU-b"}, {"cuda", []string{"GPU-c"}, "GPU-c"}} {
		o.Device, o.GPUs = c.device, c.gpus
		if s := status(t, mustBatch(t, o)["m environment"].Dir); !slices.Equal(s.GPUs, []string{c.want}) {
			t.Errorf("%s %v: %v, want %s", c.device, c.gpus, s.GPUs, c.want)
		}
	}
	var u *UsageError
	o.Device, o.GPUs = "cuda", []string{"6"}
	if _, err := Run(t.Context(), o); !errors.As(err, &u) || !strings.Contains(err.Error(), "shows 2") {
		t.Errorf("%v", err)
	}
}

func TestInterruptAndResume(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m0", "m1", "m2")
	o.Tracers = []string{"good", "hang"}
	ctx, cancel := context.WithCancel(t.Context())
	var reports []Report
	o.Report = func(r Report) { reports = append(reports, r) }
	go func() {
		for range 1000 {
			if runs(t, dir) >= 2 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		cancel()
	}()
	if _, err := Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	last := reports[len(reports)-1]
	if last.Outcome != isolate.Interrupted {
		t.Errorf("%+v", reports)
	}
	if s := status(t, last.Dir); s.Outcome != isolate.Interrupted || s.Success {
		t.Errorf("%+v", s)
	}
	if left := survivors(t, dir); len(left) > 0 {
		t.Errorf("%v survive", left)
	}
	set(t, dir, "hang", "no")
	got, sum := batch(t, o)
	if sum.Jobs != 6 || sum.Failed != 0 {
		t.Error(outcomes(got))
	}
	if runs(t, dir) != 7 {
		t.Errorf("%d runs: more than the interrupted job ran twice", runs(t, dir))
	}
}

// A supervisor that is killed leaves no process, and the next run goes on.
func TestKilledRun(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m0")
	set(t, dir, "flaky", "hang")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), runEnv+"="+dir, "TMPDIR="+dir)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait := func(what string, f func() bool) {
		t.Helper()
		for range 1500 {
			if f() {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatal(what + ": never")
	}
	wait("the job runs", func() bool { return runs(t, dir) >= 1 })
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	wait("nothing survives", func() bool { return len(survivors(t, dir)) == 0 })
	set(t, dir, "flaky", "0")
	o.Models[0].ID = "m"
	o.Tracers = []string{"flaky"}
	got, _ := batch(t, o)
	if s := outcomes(got); s != "m0 flaky ok" {
		t.Error(s)
	}
	if left, _ := filepath.Glob(filepath.Join(o.OutputDir, "*", "*", "eval", ".*")); len(left) != 1 { // the lock
		t.Errorf("%v", left)
	}
}

func TestBusy(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers = []string{"good"}
	p := place{filepath.Join(o.OutputDir, o.Models[0].Subdir(), Eval, "good")}
	l, err := p.lock()
	if err != nil {
		t.Fatal(err)
	}
	got, sum := batch(t, o)
	if got["m good"].Outcome != Busy || sum.Failed != 0 {
		t.Error(outcomes(got))
	}
	l.Close()
	if got, _ = batch(t, o); got["m good"].Outcome != "ok" {
		t.Error(outcomes(got))
	}
}

func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers = []string{"environment"}
	o.environ = append(o.environ, "MINE=user", "HF_HUB_OFFLINE=0")
	o.Config = &Config{Env: map[string]map[string]string{
		"common":      {"MINE": "config", "A": "common", "B": "common", "HF_HUB_OFFLINE": "0"},
		"huggingface": {"B": "framework", "C": "framework"},
		"environment": {"C": "tracer"},
		"vllm":        {"D": "other"},
	}}
	got, _ := batch(t, o)
	text, err := os.ReadFile(filepath.Join(got["m environment"].Dir, "env.json"))
	if err != nil {
		t.Fatal(err)
	}
	var env map[string]string
	if err := json.Unmarshal(text, &env); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{
		"MINE": "user", "A": "common", "B": "framework", "C": "tracer", "D": "",
		"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "",
	} {
		if env[k] != want {
			t.Errorf("%s is %q, want %q", k, env[k], want)
		}
	}
}

func TestIncompleteModels(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "whole", "cut", "bare", "gpt")
	path := filepath.Join(o.Models[1].Path, "model.safetensors")
	if err := os.Truncate(path, 20); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(o.Models[2].Path, "model.safetensors"))
	set(t, o.Models[3].Path, "config.json", `{"architectures":["GPTUnheardOf"]}`)
	o.Models = append(o.Models, Model{ID: "none", Path: filepath.Join(dir, "none")}, Model{ID: "org/name"})
	o.Tracers, o.Offline = []string{"good", "config_only"}, true
	got, _ := batch(t, o)
	want := "bare config_only ok, bare good incomplete, cut config_only ok, cut good incomplete, gpt config_only ok, gpt good ok, " +
		"name config_only incomplete, name good incomplete, none config_only not_found, none good not_found, whole config_only ok, whole good ok"
	if s := outcomes(got); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	if r := got["cut good"]; !strings.Contains(r.Message, "model.safetensors: ") || status(t, r.Dir).Outcome != "incomplete" {
		t.Errorf("%+v", r)
	}
	// Nothing sticks: a mended model is traced.
	if err := os.WriteFile(path, safetensors(), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, _ = batch(t, o); got["cut good"].Outcome != "ok" {
		t.Error(outcomes(got))
	}
	// vLLM says itself what it supports; weights may be made up.
	o.Framework, o.DummyWeights, o.Tracers, o.OutputDir = VLLM, true, []string{"good"}, filepath.Join(dir, "vllm")
	got, _ = batch(t, o)
	if s := outcomes(got); s != "bare good ok, cut good ok, gpt good unsupported, name good incomplete, none good not_found, whole good ok" {
		t.Error(s)
	}
}

func TestOldStatus(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers = []string{"print_fx"}
	old := filepath.Join(o.OutputDir, o.Models[0].Subdir(), Eval, "print_fx")
	if err := os.MkdirAll(old, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(device string, success bool) {
		set(t, old, StatusFile, fmt.Sprintf(`{"tracer":"print_fx","framework":"huggingface","model":"Qwen3ForCausalLM","device":%q,"mode":"eval","timestamp":"2025-01-01T00:00:00Z","success":%v}`, device, success))
	}
	write("cpu", true)
	set(t, old, "print_fx.json", "{}")
	got, _ := batch(t, o)
	if got["m print_fx"].Outcome != Done {
		t.Errorf("%+v", got)
	}
	o.Layers = 1
	if got, _ = batch(t, o); got["m print_fx"].Outcome != "ok" {
		t.Errorf("options that it does not know: %+v", got)
	}
	o.Layers = 0
	for name, change := range map[string]func(){
		"other device": func() { write("cuda", true) },
		"no success":   func() { write("cpu", false) },
		"no files":     func() { write("cpu", true); os.Remove(filepath.Join(old, "print_fx.json")) },
		"empty file":   func() { write("cpu", true); set(t, old, "print_fx.json", "") },
	} {
		set(t, old, "print_fx.json", "{}")
		change()
		if got, _ = batch(t, o); got["m print_fx"].Outcome != "ok" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What is in the place of a result and is none is not deleted.
func TestForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers, o.Flat = []string{"good"}, true
	mine := filepath.Join(o.OutputDir, "good")
	if err := os.MkdirAll(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	set(t, mine, "thesis.txt", "precious")
	got, _ := batch(t, o)
	if got["m good"].Outcome != "ok" || got["m good"].Dir != mine {
		t.Errorf("%+v", got)
	}
	if text, err := os.ReadFile(filepath.Join(mine+".replaced-1", "thesis.txt")); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestRecover(t *testing.T) {
	p := place{filepath.Join(t.TempDir(), "good")}
	for _, d := range []string{p.old(), p.attempt()} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set(t, p.old(), StatusFile, "{}")
	if err := p.recover(); err != nil || !exists(filepath.Join(p.dir, StatusFile)) || exists(p.old()) || exists(p.attempt()) {
		t.Errorf("killed between two renames: %v", err)
	}
}

func TestHook(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m")
	o.Tracers = []string{"good", "segv", "print_fx"}
	var seen []string
	o.OnFinished = func(j Job, s *Status) error {
		seen = append(seen, j.Tracer.Name)
		if !exists(filepath.Join(j.Dir, StatusFile)) || !s.Success {
			t.Errorf("%s is not in place", j.Dir)
		}
		if j.Tracer.Name == "print_fx" {
			return errors.New("no room in the lake")
		}
		return nil
	}
	got, sum := batch(t, o)
	if s := outcomes(got); s != "m good ok, m print_fx convert, m segv segv" || !slices.Equal(seen, []string{"good", "print_fx"}) || sum.Failed != 2 {
		t.Errorf("%s; %v", s, seen)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	set(t, dir, "broken", "yes")
	for name, c := range map[string]struct {
		change func(*Options)
		says   string
	}{
		"framework":         {func(o *Options) { o.Framework = "tf" }, "huggingface or vllm"},
		"mode":              {func(o *Options) { o.Mode = "test" }, "eval or train"},
		"dtype":             {func(o *Options) { o.DType = "fp8" }, "--dtype"},
		"batch":             {func(o *Options) { o.BatchSize = 0 }, "--batch-size"},
		"layers":            {func(o *Options) { o.Layers = -1 }, "--layers"},
		"device":            {func(o *Options) { o.Device = "tpu" }, "--device"},
		"two GPU options":   {func(o *Options) { o.Device, o.GPUs = "cuda:1", []string{"0"} }, "--gpus"},
		"GPUs on CPU":       {func(o *Options) { o.Device, o.GPUs = "cpu", []string{"0"} }, "--gpus"},
		"GPU twice":         {func(o *Options) { o.Device, o.GPUs = "cuda", []string{"0", "0"} }, "--gpus"},
		"no GPU":            {func(o *Options) { o.Device = "cuda" }, "sees no GPU"},
		"parallel":          {func(o *Options) { o.TensorParallel = 2 }, "--tensor-parallel-size"},
		"tracer":            {func(o *Options) { o.Tracers = []string{"unheard"} }, "there are good"},
		"other framework":   {func(o *Options) { o.Tracers = []string{"only_vllm"} }, "is for vllm"},
		"other mode":        {func(o *Options) { o.Tracers = []string{"only_train"} }, "no eval mode"},
		"no models":         {func(o *Options) { o.Models = nil }, "--model"},
		"no output":         {func(o *Options) { o.OutputDir = "" }, "--output-dir"},
		"interpreter":       {func(o *Options) { o.Python = "/nothing/python" }, "--python"},
		"wrong interpreter": {func(o *Options) { o.Python = "/bin/false" }, "/bin/false cannot list"},
	} {
		o := standin(t, dir, "m")
		c.change(&o)
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want …%s…", name, err, c.says)
		}
	}
	o := standin(t, dir, "m")
	var notices []string
	o.Tracers, o.Notice = []string{"good"}, func(s string) { notices = append(notices, s) }
	if _, err := Run(t.Context(), o); err != nil || !slices.Contains(notices, "x.py: broken") {
		t.Errorf("%v, %v", err, notices)
	}
	set(t, dir, "no_torch", "yes")
	if _, err := Run(t.Context(), o); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "torch is not installed") {
		t.Errorf("without torch: %v", err)
	}
}

func TestAllTracers(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir)
	o.Models = []Model{{ID: "org/name"}}
	o.Offline = true
	got, _ := batch(t, o)
	for _, never := range []string{"only_vllm", "only_train", "no_library"} {
		if r, ok := got["name "+never]; ok {
			t.Errorf("%+v", r)
		}
	}
	if len(got) != 18 {
		t.Error(outcomes(got))
	}
}

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	o := standin(t, dir, "m", "cut")
	os.Remove(filepath.Join(o.Models[1].Path, "model.safetensors"))
	o.Tracers = []string{"good", "second"}
	batch(t, o)
	o.Models = append(o.Models, Model{ID: "org/name"})
	o.Tracers = []string{"good", "first", "second", "config_only"}
	plan := func() string {
		var out []string
		err := Plan(t.Context(), o, func(p Planned) {
			if p.Reason == "" {
				t.Errorf("%+v", p)
			}
			out = append(out, filepath.Base(p.Model)+" "+p.Tracer+" "+p.Action)
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(out, "\n")
	}
	before := runs(t, dir)
	want := `m good skip
m first skip
m second skip
m config_only run
cut good fail
cut first fail
cut second fail
cut config_only run
name good download, run
name first download, run
name second download, run
name config_only download, run`
	if s := plan(); s != want {
		t.Errorf("%s\nwant\n%s", s, want)
	}
	o.Offline, o.Force = true, true
	if s := plan(); strings.Count(s, " run") != 5 || strings.Count(s, " fail") != 7 {
		t.Error(s)
	}
	if runs(t, dir) != before || exists(filepath.Join(o.OutputDir, "org")) {
		t.Error("a plan changed something")
	}
}
