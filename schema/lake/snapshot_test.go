package lake

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tracelake/internal/store/storetest"
)

// TestSnapshot: commits of a large lake in a bucket come from one object, save for
// those that changed since it was written, whatever state it is in.
func TestSnapshot(t *testing.T) {
	s := storetest.Start(t)
	l := bucket(t, s)
	const n = fromSnapshot + 6
	first := Commit{}
	for i := range n {
		rec := record(fmt.Sprint("trace ", i), "job", nil)
		rec.Rows = map[string]int64{}
		txn, err := l.Begin()
		if err != nil {
			t.Fatal(err)
		}
		c, err := txn.Commit(rec, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = c
		}
	}
	file := filepath.Join(s.Dir, "lake", filepath.FromSlash(snapshotPath))
	requests := func() int64 {
		t.Helper()
		l := bucket(t, s)
		before := s.Requests.Load()
		commits, err := l.Commits()
		if err != nil || len(commits) != n {
			t.Errorf("%d commits, %v", len(commits), err)
		}
		for _, c := range commits {
			if c.TraceID == first.TraceID && c.Options != first.Options {
				t.Errorf("options %q, want %q", c.Options, first.Options)
			}
		}
		return s.Requests.Load() - before
	}
	if got := requests(); got < n {
		t.Errorf("%d requests for %d commits and no snapshot", got, n)
	}
	l = bucket(t, s)
	if _, err := l.Commits(); err != nil {
		t.Fatal(err)
	}
	if err := l.SaveIndex(); err != nil {
		t.Fatal(err)
	}
	if got := requests(); got > 6 {
		t.Errorf("%d requests with a snapshot", got)
	}
	first.Options = "others"
	if err := l.write(commitPath(first.TraceID), &first, replaceFile); err != nil {
		t.Fatal(err)
	}
	if got := requests(); got > 8 {
		t.Errorf("%d requests after one commit changed", got)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{nil, []byte("no snapshot"), whole[:len(whole)/2]} {
		s.Write(t, "lake/"+snapshotPath, data)
		requests()
	}
}
