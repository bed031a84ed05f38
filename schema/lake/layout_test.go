package lake

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"tracelake/schema/columnar"
)

// halfDone merges the parts of diagnostics as far as the journal and, where
// asked for, the swap of the directory; the commits do not know of it.
func halfDone(t *testing.T, l *Lake, swapped bool) (*Txn, change) {
	t.Helper()
	dirs, err := l.partsByDir(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := "diagnostics/run=job/rank=0"
	staged, txn, err := l.stage()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = txn.Abort() })
	ch := change{Dir: dir}
	if _, err := l.merge(staged, dir, dirs[dir], &ch, columnar.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(l.meta(layoutJournal), &ch, createFile); err != nil {
		t.Fatal(err)
	}
	if swapped {
		if err := exchange(staged, l.Abs(dir)); err != nil {
			t.Fatal(err)
		}
	}
	return txn, ch
}

// TestMoverDies: whoever waits while another process moves files finds the
// change that it left when it died, and finishes it before anything else.
func TestMoverDies(t *testing.T) {
	id := record("trace 1", "job", nil).TraceID
	for name, waiting := range map[string]func(*Lake) error{
		"remove":  func(l *Lake) error { return l.remove(id) },
		"replace": func(l *Lake) error { _, err := putRows(l, "trace 1", 0, 20, true); return err },
		"sweep":   func(l *Lake) error { _, err := l.Sweep(-time.Hour); return err },
	} {
		t.Run(name, func(t *testing.T) {
			l := create(t, t.TempDir())
			for i := range 3 {
				if _, err := putRows(l, fmt.Sprint("trace ", i), 0, 10, false); err != nil {
					t.Fatal(err)
				}
			}
			mover := create(t, l.root)
			lock, err := mover.moveAlone()
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- waiting(l) }()
			time.Sleep(50 * time.Millisecond) // long enough to wait for the lock
			halfDone(t, mover, true)
			lock.Close()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			checkRows(t, l, "diagnostics")
			checkRows(t, l, "traces")
		})
	}
}

// TestHalfDone stops a change at each of its steps, as a kill would.
func TestHalfDone(t *testing.T) {
	for _, step := range []string{"journal", "exchange", "one commit", "all commits"} {
		t.Run(step, func(t *testing.T) {
			l := create(t, t.TempDir())
			for i := range 3 {
				if _, err := putRows(l, fmt.Sprint("trace ", i), 0, 10, false); err != nil {
					t.Fatal(err)
				}
			}
			txn, ch := halfDone(t, l, step != "journal")
			moves := map[string]int{"one commit": 1, "all commits": 3}[step]
			for _, m := range ch.Moves[:moves] {
				c, err := l.readCommit(m.TraceID)
				if err != nil || !c.move(m) {
					t.Fatal(err)
				}
				if err := writeJSON(l.Abs(commitPath(m.TraceID)), &c, replaceFile); err != nil {
					t.Fatal(err)
				}
			}
			// A reader that may not write sees everything in its place.
			reader, err := Open(l.root)
			if err != nil {
				t.Fatal(err)
			}
			checkRows(t, reader, "diagnostics")
			if _, err := os.Stat(l.meta(layoutJournal)); err != nil {
				t.Fatal("a reader changed the dataset")
			}
			// A writer finishes it.
			again := create(t, l.root)
			checkRows(t, again, "diagnostics")
			if _, err := os.Stat(l.meta(layoutJournal)); !errors.Is(err, fs.ErrNotExist) {
				t.Error("the journal is still there")
			}
			files, err := again.files("diagnostics")
			if want := map[bool]int{true: 3, false: 1}[step == "journal"]; err != nil || len(files) != want {
				t.Errorf("%d files: %v", len(files), err)
			}
			_ = txn.Abort()
			compact(t, again)
		})
	}
}

// TestBadJournal: a journal that leads out of the tables is refused.
func TestBadJournal(t *testing.T) {
	l := create(t, t.TempDir())
	for _, text := range []string{
		"{", `{"remove": ["../x"]}`, `{"add": [{"path": "/etc/passwd"}]}`,
		`{"moves": [{"trace_id": "../../x"}]}`, `{"moves": [{"trace_id": "0123456789abcdef", "to": {"path": "_tracelake/format.json"}}]}`,
	} {
		if err := os.WriteFile(l.meta(layoutJournal), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(l.root, "test"); err == nil || !strings.Contains(err.Error(), layoutJournal) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
