package convert

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tracelake/schema/lake"
)

func list(t *testing.T, o Options, paths ...string) (todo []string, sum Summary) {
	t.Helper()
	found, err := Discover(paths)
	if err != nil {
		t.Fatal(err)
	}
	i, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	sum, err = i.List(context.Background(), found, func(r Report) {
		if r.Skipped == "" {
			todo = append(todo, r.Unit)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return todo, sum
}

// TestMembers checks that processes that each take one input and know nothing of
// each other fill a dataset as one process does, and that each input may be
// converted again and again.
func TestMembers(t *testing.T) {
	alone := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}
	mustRun(t, alone, demo)
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r", Writer: "tracelake test"}
	todo, sum := list(t, o, demo)
	if len(todo) != sum.Inputs || sum.Inputs < 5 || sum.Skipped != 0 {
		t.Fatalf("before: %d of %+v", len(todo), sum)
	}
	views := filepath.Join(o.Output, lake.MetaDir, "views.sql")
	if err := os.Remove(views); err != nil {
		t.Fatal(err)
	}
	o.Member = true
	for round := range 2 {
		for _, path := range todo {
			_, sum := mustRun(t, o, path)
			if sum.Done != 1-round || sum.Skipped != round || sum.Notices != nil {
				t.Fatalf("%s, round %d: %+v", path, round, sum)
			}
		}
	}
	if _, err := os.Stat(views); err == nil {
		t.Fatal("a member wrote views.sql")
	}
	same(t, "members", parts(t, alone.Output), parts(t, o.Output))
	o.Member = false
	if todo, sum := list(t, o, demo); len(todo) != 0 || sum.Skipped != sum.Inputs || len(sum.Notices) == 0 {
		t.Fatalf("after: %d of %+v", len(todo), sum)
	}
	if _, err := os.Stat(views); err != nil {
		t.Fatal(err)
	}
}

// TestOwnContent checks that a file never becomes the twin of itself: touched,
// or with other options, its trace is replaced.
func TestOwnContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank0.json")
	if err := os.WriteFile(path, []byte(`{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Output: filepath.Join(t.TempDir(), "lake")}
	mustRun(t, o, path)
	before := parts(t, o.Output)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	for round, want := range []int{1, 0} { // the new time is noted
		if _, sum := mustRun(t, o, path); sum.Done != want || sum.Duplicates != 0 {
			t.Fatalf("touched, round %d: %+v", round, sum)
		}
	}
	same(t, "touched", before, parts(t, o.Output))
	o.Detail = "kernel"
	if _, sum := mustRun(t, o, path); sum.Done != 1 || sum.Duplicates != 0 {
		t.Fatalf("other options: %+v", sum)
	}
	if n := len(parts(t, o.Output)); n != len(before) {
		t.Fatalf("%d parts, want %d", n, len(before))
	}
}

// TestOtherRun checks that a trace moves to the run that it is asked for under, and
// stays where it is when none is named.
func TestOtherRun(t *testing.T) {
	dir := t.TempDir()
	path, twin, broken := filepath.Join(dir, "rank0.json"), filepath.Join(dir, "twin.json"), filepath.Join(dir, "broken.json")
	trace := `{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}`
	for p, text := range map[string]string{path: trace, twin: trace, broken: "no trace"} {
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "one", Writer: "tracelake test"}
	mustRun(t, o, path)
	mustRun(t, o, dir)
	n := len(parts(t, o.Output))
	for round, c := range []struct {
		run  string
		done int
	}{{"one", 0}, {"Two", 3}, {"two", 0}, {"", 0}, {"one", 3}} {
		o.Run = c.run
		if todo, _ := list(t, o, dir); len(todo) != c.done {
			t.Errorf("round %d: to do %v, want %d", round, todo, c.done)
		}
		if _, sum := mustRun(t, o, dir); sum.Done != c.done || sum.Skipped != 3-c.done {
			t.Errorf("round %d: %+v, want %d", round, sum, c.done)
		}
		if got := len(parts(t, o.Output)); got != n {
			t.Errorf("round %d: %d parts, want %d", round, got, n)
		}
	}
	for p := range parts(t, o.Output) {
		if strings.Contains(p, "run=two") {
			t.Errorf("left behind: %s", p)
		}
	}
}
