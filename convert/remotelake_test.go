package convert

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tracelake/internal/store/storetest"
)

// dataset returns all files of a dataset but those that name its place or keep
// processes apart, and what a gateway keeps beside objects.
func dataset(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		if err != nil || e.IsDir() || strings.HasPrefix(rel, "_tracelake/layout") || strings.HasPrefix(rel, "_tracelake/views") {
			return err
		}
		data, err := os.ReadFile(p)
		out[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDatasetInObjectStore(t *testing.T) {
	s := storetest.Start(t)
	t.Setenv("TMPDIR", t.TempDir())
	want, _ := imported(t, Options{Run: "r"}, "../testdata/demo", "../testdata/stormlog/args_list.json")
	at := s.URL("lake")
	here := filepath.Join(s.Dir, "lake")
	_, reports := imported(t, Options{Run: "r", Output: at}, "../testdata/demo", "../testdata/stormlog/args_list.json")
	if len(reports) != 8 {
		t.Errorf("%d inputs", len(reports))
	}
	same(t, "in a bucket and in a directory", dataset(t, here), dataset(t, want))
	_, reports = imported(t, Options{Run: "r", Output: at}, "../testdata/demo")
	for name, r := range reports {
		if r.Skipped != AlreadyThere {
			t.Errorf("%s was imported again", name)
		}
	}
	_, reports = imported(t, Options{Run: "r", Output: at, Force: true}, "../testdata/demo")
	for name, r := range reports {
		if r.Skipped != "" || r.Outcome != "ok" {
			t.Errorf("--force: %s: %+v", name, r)
		}
	}
	same(t, "after --force", dataset(t, here), dataset(t, want))
	views, err := os.ReadFile(filepath.Join(here, "_tracelake", "views.sql"))
	if err != nil || !bytes.Contains(views, []byte("'s3://traces/lake/gpu_events/run=*/rank=*/*.parquet'")) || bytes.Contains(views, []byte("endpoint")) {
		t.Errorf("views.sql: %v", err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("temporary files stay: %v", left)
	}
}

// TestTargetSizeInObjectStore: files of a bucket are merged as those of a
// directory are, and a forced import cleans what it replaced.
func TestTargetSizeInObjectStore(t *testing.T) {
	s := storetest.Start(t)
	dir := t.TempDir()
	for _, to := range []string{dir, s.URL("lake")} {
		imported(t, Options{Run: "r", Output: to, TargetFileSize: 64 << 20}, "../testdata/demo")
		imported(t, Options{Run: "r", Output: to, Force: true}, "../testdata/demo/serving")
		imported(t, Options{Run: "r", Output: to, TargetFileSize: 64 << 20}, "../testdata/demo")
	}
	here := filepath.Join(s.Dir, "lake")
	for _, table := range []string{"traces", "gpu_events", "diagnostics"} {
		got, want := parts(t, here, table), parts(t, dir, table)
		if len(got) != len(want) {
			t.Errorf("%s: %d files in the bucket, %d in the directory", table, len(got), len(want))
		}
	}
	_, reports := imported(t, Options{Run: "r", Output: s.URL("lake")}, "../testdata/demo")
	for name, r := range reports {
		if r.Skipped != AlreadyThere {
			t.Errorf("%s was imported again", name)
		}
	}
}

// TestMemberCost checks that one of many processes asks a store as often in a
// large dataset as in a small one.
func TestMemberCost(t *testing.T) {
	s := storetest.Start(t)
	t.Setenv("TMPDIR", t.TempDir())
	o := Options{Run: "r", Output: s.URL("lake"), Member: true}
	cost := func() int64 {
		before := s.Requests.Load()
		imported(t, o, "../testdata/demo/cpu/hf_eval_plain.json.gz")
		return s.Requests.Load() - before
	}
	cost()
	small := cost()
	imported(t, o, "../testdata/demo")
	if large := cost(); large != small || small == 0 {
		t.Errorf("%d requests with one trace in the dataset, %d with all", small, large)
	}
}

// TestTwins checks that processes that import the same inputs at once, as an
// engine that does not wait for stragglers has them do, change nothing.
func TestTwins(t *testing.T) {
	s := storetest.Start(t)
	want, _ := imported(t, Options{Run: "r"}, "../testdata/demo")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			found, err := Discover([]string{"../testdata/demo"})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := Run(t.Context(), found, Options{Run: "r", Output: s.URL("lake"), Writer: "test"}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	same(t, "three writers and one", dataset(t, filepath.Join(s.Dir, "lake")), dataset(t, want))
}

// TestKilledWriter kills writers at random moments, and checks that one that is
// left alone makes the dataset that an undisturbed one makes.
func TestKilledWriter(t *testing.T) {
	if to := os.Getenv("TRACELAKE_TEST_IMPORT"); to != "" {
		imported(t, Options{Run: "r", Output: to, Workers: 2}, "../testdata/demo")
		return
	}
	s := storetest.Start(t)
	t.Setenv("TMPDIR", t.TempDir())
	want, _ := imported(t, Options{Run: "r"}, "../testdata/demo")
	started := time.Now()
	kills := 0
	for kills < 12 && time.Since(started) < 20*time.Second {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
		cmd.Env = append(os.Environ(), "TRACELAKE_TEST_IMPORT="+s.URL("lake"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(30+rand.IntN(600)) * time.Millisecond)
		_ = cmd.Process.Kill()
		if cmd.Wait() != nil {
			kills++
		}
	}
	if kills == 0 {
		t.Error("no writer was killed")
	}
	imported(t, Options{Run: "r", Output: s.URL("lake")}, "../testdata/demo")
	same(t, "after kills and undisturbed", dataset(t, filepath.Join(s.Dir, "lake")), dataset(t, want))
}

// TestRefusedWrites checks that an input that the store does not take fails
// alone, and that an import ends where the store takes nothing.
func TestRefusedWrites(t *testing.T) {
	s := storetest.Start(t)
	want, reports := imported(t, Options{Run: "r"}, "../testdata/demo")
	id := reports["rank0.pt.trace.json.gz"].TraceID
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, id+".json") && storetest.SlowDown(w)
	})
	_, reports = imported(t, Options{Run: "r", Output: s.URL("lake")}, "../testdata/demo")
	for name, r := range reports {
		if (name == "rank0.pt.trace.json.gz") != (strings.Contains(r.Failed, "not written") && strings.Contains(r.Failed, "fewer requests")) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	s.Fail(nil)
	imported(t, Options{Run: "r", Output: s.URL("lake")}, "../testdata/demo")
	same(t, "with a refused commit, repeated", dataset(t, filepath.Join(s.Dir, "lake")), dataset(t, want))

	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	found, err := Discover([]string{"../testdata/demo"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), found, Options{Run: "r", Output: s.URL("other"), Writer: "test"}, nil)
	if err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("a bucket that must not be written: %v", err)
	}
}
