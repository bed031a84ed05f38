package convert

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// manyNames is a trace whose tables take more than a megabyte.
func manyNames(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"traceEvents": [`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `{"ph": "X", "cat": "cpu_op", "name": "%x", "pid": 1, "tid": 1, "ts": %d, "dur": 2},`, i*2654435761, i*i%1000003)
	}
	b.WriteString(oneEvent[17:])
	return put(t, filepath.Join(t.TempDir(), "t.json"), b.String())
}

// fails converts a trace and expects an error, or a report of one, that says why,
// and nothing that counts as data.
func fails(t *testing.T, o Options, path, why string) {
	t.Helper()
	found, err := Discover([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	o.Run, o.Writer = "r", "tracelake test"
	said := ""
	sum, err := Run(t.Context(), found, o, func(r Report) { said += r.Failed })
	if err != nil {
		said += err.Error()
	} else if !sum.Bad() {
		t.Errorf("no failure: %+v", sum)
	}
	if !strings.Contains(said, why) || !strings.Contains(said, filepath.Base(o.Output)) {
		t.Errorf("said %q, want %q and the dataset", said, why)
	}
	if _, err := os.Stat(o.Output); err == nil {
		if p := parts(t, o.Output); len(p) != 0 {
			t.Errorf("committed: %v", p)
		}
	}
}

// TestFileSizeLimit lets writing fail with EFBIG, as under ulimit -f; without
// the limit the same dataset is completed. The limit is set in a process of its
// own, as it would hold for what the test itself writes.
func TestFileSizeLimit(t *testing.T) {
	const traceEnv, lakeEnv = "TRACELAKE_TEST_LIMITED_TRACE", "TRACELAKE_TEST_LIMITED_LAKE"
	if path := os.Getenv(traceEnv); path != "" {
		limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Skipf("setting a limit: %v", err)
		}
		fails(t, Options{Output: os.Getenv(lakeEnv)}, path, "file too large")
		return
	}
	path := manyNames(t)
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}
	limited := exec.Command(os.Args[0], "-test.run=^TestFileSizeLimit$", "-test.v")
	limited.Env = append(os.Environ(), traceEnv+"="+path, lakeEnv+"="+o.Output)
	out, err := limited.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS") {
		t.Fatalf("with the limit: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "SKIP") {
		t.Skipf("%s", out)
	}
	if reports, _ := mustRun(t, o, path); reports["t.json"].Outcome != "ok" {
		t.Errorf("without the limit: %+v", reports)
	}
}

// TestReadOnlyOutput has the dataset on a file system that is read-only.
func TestReadOnlyOutput(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", syscall.MS_RDONLY, "size=1m"); err != nil {
		t.Skipf("mounting a read-only file system: %v", err)
	}
	t.Cleanup(func() { unmount(small) })
	fails(t, Options{Output: filepath.Join(small, "lake")}, put(t, filepath.Join(t.TempDir(), "t.json"), oneEvent), "read-only file system")
}

// TestVanishingOutput removes the dataset while a trace is imported.
func TestVanishingOutput(t *testing.T) {
	var once sync.Once
	o := Options{Output: filepath.Join(t.TempDir(), "lake")}
	o.Progress = func(string, int64) {
		once.Do(func() {
			if err := os.Rename(o.Output, o.Output+".gone"); err != nil {
				t.Error(err)
			}
		})
	}
	fails(t, o, manyNames(t), "no such file or directory")
}

// TestOddClocks imports files of 1970 and of the future, and finds them again.
func TestOddClocks(t *testing.T) {
	for name, at := range map[string]time.Time{
		"epoch": time.Unix(0, 0), "before": time.Unix(-86400, 0), "future": time.Now().AddDate(50, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			path := put(t, filepath.Join(t.TempDir(), "t.json"), oneEvent)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
			o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}
			if reports, _ := mustRun(t, o, path); reports["t.json"].Outcome != "ok" {
				t.Errorf("%+v", reports)
			}
			if reports, _ := mustRun(t, o, path); reports["t.json"].Skipped != AlreadyThere {
				t.Errorf("not found again: %+v", reports)
			}
		})
	}
}
