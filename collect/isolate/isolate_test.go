package isolate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// supervisorEnv makes the test binary supervise one hanging worker, to be
// killed itself.
const supervisorEnv = "ISOLATE_TEST_SUPERVISE"

func TestMain(m *testing.M) {
	MaybeGuard()
	os.Setenv("GORACE", "atexit_sleep_ms=0") // guards end at once
	if mark := os.Getenv(supervisorEnv); mark != "" {
		out := Run(context.Background(), faulty("escape_and_hang", mark, filepath.Join(os.TempDir(), mark+".log")))
		fmt.Println(out.Class)
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

// markEnv tells the processes of one test from all others.
const markEnv = "ISOLATE_TEST_MARK"

func faulty(name, mark, log string) Spec {
	script, _ := filepath.Abs("testdata/faults.py")
	return Spec{
		Argv:    []string{python(), "-X", "faulthandler", script, name},
		Env:     append(os.Environ(), "TRACELAKE_EVENTS_FD=3", markEnv+"="+mark),
		LogPath: log, Timeout: time.Minute, Grace: 300 * time.Millisecond,
	}
}

// marked lists living processes of a test.
func marked(t *testing.T, mark string) []int {
	t.Helper()
	var out []int
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		t.Skip("no /proc")
	}
	for _, d := range dirs {
		env, err := os.ReadFile(d + "/environ")
		if err != nil || !bytes.Contains(env, []byte(markEnv+"="+mark+"\x00")) {
			continue
		}
		stat, _ := os.ReadFile(d + "/stat")
		if i := bytes.LastIndexByte(stat, ')'); i > 0 && !bytes.HasPrefix(stat[i+1:], []byte(" Z")) {
			var pid int
			_, _ = fmt.Sscan(filepath.Base(d), &pid)
			out = append(out, pid)
		}
	}
	return out
}

func TestFaults(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("guards are Linux only")
	}
	const mib = 1 << 20
	for _, c := range []struct {
		name, class, says string
		change            func(*Spec)
		check             func(*testing.T, Outcome)
	}{
		{name: "ok", class: OK, check: func(t *testing.T, o Outcome) {
			if len(o.Phases) != 2 || o.Phases[0].Name != "load_model" || o.Result.Architecture != "Tiny" || *o.Result.PeakDeviceBytes != 7 || o.Exit != 0 {
				t.Errorf("%+v", o)
			}
			if o.PeakRSS < mib || o.Leftovers != 0 || !bytes.Contains(o.Start, []byte(`"torch"`)) {
				t.Errorf("peak %d, leftovers %d, start %s", o.PeakRSS, o.Leftovers, o.Start)
			}
		}},
		{name: "no_result", class: NoResult, says: "last output: SUCCESS"},
		{name: "exit_7", class: NoResult, says: "status 7 without a result; last output: last words", check: func(t *testing.T, o Outcome) {
			if o.Exit != 7 {
				t.Errorf("exit %d", o.Exit)
			}
		}},
		{name: "segv", class: Segv, says: "in phase trace", check: func(t *testing.T, o Outcome) {
			if o.Signal != "SIGSEGV" {
				t.Errorf("signal %q", o.Signal)
			}
		}},
		{name: "abort", class: Abort},
		{name: "killed", class: Killed, says: "SIGKILL"},
		{name: "allocate", class: OOMHost, says: "limit of 200 MiB", change: func(s *Spec) { s.MaxRSS = 200 * mib }},
		{name: "allocate_in_child", class: OOMHost, says: "limit of 200 MiB", change: func(s *Spec) { s.MaxRSS = 200 * mib }},
		{name: "shared", class: OK, change: func(s *Spec) { s.MaxRSS = 700 * mib }, check: func(t *testing.T, o Outcome) {
			if o.PeakRSS < 900*mib {
				t.Errorf("peak %d: the four processes together show more", o.PeakRSS)
			}
		}},
		{name: "hang", class: Timeout, says: "still running", change: func(s *Spec) { s.Timeout = 500 * time.Millisecond }},
		{name: "hang", class: Stall, change: func(s *Spec) { s.Stall = 500 * time.Millisecond }},
		{name: "hang_with_heartbeats", class: Stall, change: func(s *Spec) { s.Stall = time.Second }},
		{name: "same_progress", class: Stall, change: func(s *Spec) { s.Stall = time.Second }},
		{name: "slow_but_moving", class: OK, change: func(s *Spec) { s.Stall = 1500 * time.Millisecond }},
		{name: "slow_but_talking", class: OK, change: func(s *Spec) { s.Stall = 1500 * time.Millisecond }},
		{name: "escape", class: OK, check: func(t *testing.T, o Outcome) {
			if o.Leftovers != 1 || o.Survivors != 0 {
				t.Errorf("%d leftovers, %d survivors", o.Leftovers, o.Survivors)
			}
		}},
		{name: "escape_and_hang", class: Timeout, change: func(s *Spec) { s.Timeout = time.Second }},
		{name: "fork_tree", class: Stall, change: func(s *Spec) { s.Stall = time.Second }},
		{name: "flood", class: OK, change: func(s *Spec) { s.LogHead, s.LogTail = 64<<10, 16<<10 }, check: func(t *testing.T, o Outcome) {
			if o.LogBytes != 64<<20+21 || o.LogCut != o.LogBytes-80<<10 {
				t.Errorf("%d bytes, %d cut", o.LogBytes, o.LogCut)
			}
		}},
		{name: "garbage", class: OK, check: func(t *testing.T, o Outcome) {
			if o.Garbage != 7 {
				t.Errorf("%d lines of garbage", o.Garbage)
			}
		}},
		{name: "half_line", class: NoResult, check: func(t *testing.T, o Outcome) {
			if o.Garbage != 1 {
				t.Errorf("%d lines of garbage", o.Garbage)
			}
		}},
		{name: "closed_descriptor", class: NoResult, says: "closed its event descriptor"},
		{name: "result_then_hang", class: OK, says: "did not exit", change: func(s *Spec) { s.ExitGrace, s.Stall = 500*time.Millisecond, time.Second }},
		{name: "result_then_hang", class: OK, says: "did not exit", change: func(s *Spec) { s.ExitGrace, s.Timeout = 6*time.Second, 4*time.Second }},
		{name: "result_then_exit_3", class: Failed, says: "status 3"},
		{name: "failed", class: OOMDevice, says: "no room"},
		{name: "lies", class: Failed, check: func(t *testing.T, o Outcome) {
			if len(o.Message) > 8<<10 {
				t.Errorf("a message of %d bytes", len(o.Message))
			}
		}},
		{name: "interrupt_ignored", class: OK, check: func(t *testing.T, o Outcome) {
			if !bytes.Contains(o.Result.Details, []byte("true")) {
				t.Errorf("signals are not as in a fresh process: %s", o.Result.Details)
			}
		}},
	} {
		t.Run(c.name+"_"+c.class, func(t *testing.T) {
			mark := fmt.Sprintf("%s-%d-%d", c.name, os.Getpid(), time.Now().UnixNano())
			log := filepath.Join(t.TempDir(), "log.txt")
			spec := faulty(c.name, mark, log)
			if c.change != nil {
				c.change(&spec)
			}
			o := Run(t.Context(), spec)
			if o.Class != c.class || !strings.Contains(o.Message, c.says) {
				text, _ := os.ReadFile(log)
				t.Errorf("%s: %s; want %s: …%s…\n%.2000s", o.Class, o.Message, c.class, c.says, text)
			}
			if c.check != nil {
				c.check(t, o)
			}
			if left := marked(t, mark); len(left) > 0 {
				t.Errorf("%v survive", left)
			}
		})
	}
}

// A control group that cannot be used costs nothing: what is measured is the
// limit. (One that can be used needs the memory controller and the right to
// make groups, which test machines seldom give.)
func TestNoCgroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("guards are Linux only")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("cpu memory\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRACELAKE_CGROUP", dir)
	spec := faulty("allocate", "cgroup", filepath.Join(dir, "log"))
	spec.MaxRSS = 200 << 20
	if o := Run(t.Context(), spec); o.Class != OOMHost || o.Confined != "guard" {
		t.Errorf("%s, %s: %s", o.Class, o.Confined, o.Message)
	}
}

func TestLogKeepsBothEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := createLog(path, 10, 6)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"0123", "456789ab", "cdefghijklm", "nopq"} {
		_, _ = l.Write([]byte(s))
	}
	cut, err := l.close()
	if err != nil || cut != 11 {
		t.Errorf("cut %d, %v", cut, err)
	}
	text, _ := os.ReadFile(path)
	if want := "0123456789\n[… 11 bytes of output cut here …]\nlmnopq"; string(text) != want {
		t.Errorf("%q", text)
	}
}

func TestInterrupted(t *testing.T) {
	mark := fmt.Sprintf("int-%d", time.Now().UnixNano())
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(700*time.Millisecond, cancel)
	o := Run(ctx, faulty("escape_and_hang", mark, filepath.Join(t.TempDir(), "log")))
	if o.Class != Interrupted {
		t.Errorf("%s: %s", o.Class, o.Message)
	}
	if left := marked(t, mark); len(left) > 0 {
		t.Errorf("%v survive", left)
	}
}

func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	o := Run(t.Context(), Spec{Argv: []string{filepath.Join(dir, "nothing")}, LogPath: filepath.Join(dir, "log")})
	if o.Class != StartFailed || !strings.Contains(o.Message, "nothing") {
		t.Errorf("%s: %s", o.Class, o.Message)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("\x7fELFnot really"), 0o755); err != nil {
		t.Fatal(err)
	}
	o = Run(t.Context(), Spec{Argv: []string{bad}, LogPath: filepath.Join(dir, "log")})
	if o.Class != StartFailed || !strings.Contains(o.Message, "cannot start") {
		t.Errorf("%s: %s", o.Class, o.Message)
	}
}

// waitFor polls until a condition holds; it fails after a generous time.
func waitFor(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 1500 {
		if f() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s: never", what)
}

// Whoever dies without a chance to clean up, nothing of the worker stays.
func TestKilledSupervisor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("guards are Linux only")
	}
	mark := fmt.Sprintf("sup-%d", time.Now().UnixNano())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), supervisorEnv+"="+mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(os.TempDir(), mark+".log")) })
	waitFor(t, "worker and its two escapees run", func() bool { return len(marked(t, mark)) == 3 })
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	waitFor(t, "nothing survives", func() bool { return len(marked(t, mark)) == 0 })
}

func TestKilledGuard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("guards are Linux only")
	}
	mark := fmt.Sprintf("guard-%d", time.Now().UnixNano())
	done := make(chan Outcome, 1)
	go func() { done <- Run(t.Context(), faulty("escape_and_hang", mark, filepath.Join(t.TempDir(), "log"))) }()
	waitFor(t, "worker and its two escapees run", func() bool { return len(marked(t, mark)) == 3 })
	// The guard is the parent of the worker.
	for _, pid := range marked(t, mark) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		var parent int
		_, _ = fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " %c %d", new(rune), &parent)
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", parent))
		if bytes.HasPrefix(line, []byte("tracelake-guard")) {
			_ = syscall.Kill(parent, syscall.SIGKILL)
		}
	}
	o := <-done
	if o.Class != Killed {
		t.Errorf("%s: %s", o.Class, o.Message)
	}
	waitFor(t, "nothing survives", func() bool { return len(marked(t, mark)) == 0 })
}

func FuzzReadEvents(f *testing.F) {
	f.Add([]byte("{\"event\":\"phase\",\"name\":\"x\"}\n{\"event\":\"result\",\"ok\":false}\nrest"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := int64(0)
		garbage := readEvents(bytes.NewReader(data), func(e Event) {
			n++
			if e.Event == "" {
				t.Error("an event without a name")
			}
			if e.Raw != nil && !json.Valid(e.Raw) {
				t.Errorf("kept %q", e.Raw)
			}
			if e.Event == "result" {
				if r := parseResult(e.Raw); r != nil && !r.OK && r.Error.Class == "" {
					t.Error("a failure without a class")
				}
			}
		})
		if lines := int64(bytes.Count(data, []byte("\n")) + 1); garbage+n > lines {
			t.Errorf("%d events and %d lines of garbage in %d lines", n, garbage, lines)
		}
	})
}
