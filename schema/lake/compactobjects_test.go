package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"tracelake/internal/store"
	_ "tracelake/internal/store/cloud"
	"tracelake/internal/store/storetest"
)

// objectsOf is what a reader makes of the commits: the rows of each trace in a
// table, taken from shared files where their commits name them.
func rowsByCommits(l *Lake, dir, table string) (map[string]int, error) {
	commits, err := l.Settled()
	if err != nil {
		return nil, err
	}
	keep := Keep(commits)
	rows := map[string]int{}
	seen := map[string]bool{}
	for _, c := range commits {
		for _, f := range c.Files {
			if f.Table != table || seen[f.Path] {
				continue
			}
			seen[f.Path] = true
			to := filepath.Join(dir, strings.ReplaceAll(f.Path, "/", "."))
			os.Remove(to)
			if err := l.Fetch(context.Background(), f.Path, to, keep[f.Path]); err != nil {
				return nil, err
			}
			ids, err := traceIDs(to)
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				rows[id]++
			}
		}
	}
	return rows, nil
}

// traceIDs returns the trace of each row of a part.
func traceIDs(file string) (ids []string, err error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(in, st.Size())
	if err != nil {
		return nil, err
	}
	r := parquet.NewReader(f)
	defer r.Close()
	for buf := make([]parquet.Row, 64); ; {
		n, err := r.ReadRows(buf)
		for _, row := range buf[:n] {
			ids = append(ids, row[0].String())
		}
		if err != nil {
			return ids, nil //nolint:nilerr // the end
		}
	}
}

// checkObjects compares what commits lead to with what they say.
func checkObjects(t *testing.T, l *Lake) {
	t.Helper()
	commits, err := l.Commits()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for table := range textColumns {
		got, err := rowsByCommits(l, dir, table)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{}
		for _, c := range commits {
			for _, f := range c.Files {
				if f.Table == table && f.Rows > 0 {
					want[c.TraceID] = int(f.Rows)
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", table, got, want)
		}
	}
}

// checkListed makes sure that tools that list the bucket find what commits name,
// and that nothing is left under way.
func checkListed(t *testing.T, s *storetest.S3, l *Lake) {
	t.Helper()
	commits, err := l.Commits()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, c := range commits {
		for _, f := range c.Files {
			want[f.Path] = true
		}
	}
	got := map[string]bool{}
	root := filepath.Join(s.Dir, "lake")
	err = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, p)
		switch {
		case err != nil || e.IsDir():
		case isPart(rel):
			got[rel] = true
		case strings.HasPrefix(rel, movesDir), strings.Contains(rel, "probe"):
			t.Errorf("%s is left", rel)
		}
		return err
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("listed %v, committed %v, %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), err)
	}
	for table := range textColumns {
		rows, err := scan(root, table)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commits {
			for _, f := range c.Files {
				if f.Table == table && int64(rows[c.TraceID]) != f.Rows {
					t.Errorf("%s: %d rows of trace %s are listed, %d committed", table, rows[c.TraceID], c.TraceID, f.Rows)
				}
			}
		}
	}
}

func bucket(t *testing.T, s *storetest.S3) *Lake {
	t.Helper()
	l, err := Create(s.URL("lake"), "test")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func putSix(t *testing.T, l *Lake) {
	t.Helper()
	for i := range 6 {
		if _, err := putRows(l, fmt.Sprint("trace ", i), int64(i%2), 10+i, false); err != nil {
			t.Fatal(err)
		}
	}
}

func compactBucket(t *testing.T, l *Lake) Compacted {
	t.Helper()
	sum, err := l.Compact(t.Context(), CompactOptions{TargetBytes: smallTarget})
	if err != nil {
		t.Fatal(err)
	}
	checkObjects(t, l)
	return sum
}

func TestCompactObjects(t *testing.T) {
	s := storetest.Start(t)
	t.Setenv("TMPDIR", t.TempDir())
	l := bucket(t, s)
	putSix(t, l)
	if sum := compactBucket(t, l); sum.Merged != 12 || sum.Into != 3 || sum.Busy != 0 || sum.Left != 0 || sum.After >= sum.Before {
		t.Fatalf("%+v", sum)
	}
	checkListed(t, s, l)
	if sum := compactBucket(t, l); sum.Merged != 0 {
		t.Errorf("again: %+v", sum)
	}
	for _, l := range []*Lake{l, bucket(t, s)} {
		for i := range 6 {
			if _, ok := l.Done(record(fmt.Sprint("trace ", i), "job", new(int64(i%2))).Source, ""); !ok {
				t.Errorf("trace %d is not done", i)
			}
		}
	}

	// A trace that is imported again leaves rows that do not count, until they
	// are cleaned away; so does one that is removed.
	if _, err := putRows(l, "trace 2", 0, 40, true); err != nil {
		t.Fatal(err)
	}
	if err := l.remove(record("trace 3", "job", nil).TraceID); err != nil {
		t.Fatal(err)
	}
	checkObjects(t, l)
	if err := l.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkObjects(t, l)
	checkListed(t, s, l)
	if sum := compactBucket(t, l); sum.Merged != 4 || sum.Into != 2 {
		t.Errorf("with a trace that was imported again: %+v", sum)
	}
	checkListed(t, s, l)
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("temporary files stay: %v", left)
	}
}

// TestSplitInBucket: a dataset whose shared files were split is copied to a bucket,
// where its traces are imported again one by one. Commits of earlier versions do
// not say how many rows such a file has.
func TestSplitInBucket(t *testing.T) {
	for _, counted := range []bool{true, false} {
		local := compacted(t)
		if _, err := putRows(local, "trace 0", 0, 33, true); err != nil {
			t.Fatal(err)
		}
		commits, err := local.Commits()
		if err != nil {
			t.Fatal(err)
		}
		shared := 0
		for _, c := range commits {
			for i := range c.Files {
				f := &c.Files[i]
				if !f.Shared {
					continue
				}
				if shared++; f.FileRows <= f.Rows {
					t.Errorf("%d rows of all traces, %d of one", f.FileRows, f.Rows)
				}
				if !counted {
					f.FileRows = 0
				}
			}
			if err := writeJSON(local.Abs(commitPath(c.TraceID)), &c, replaceFile); err != nil {
				t.Fatal(err)
			}
		}
		if shared == 0 {
			t.Fatal("no file is shared")
		}
		s := storetest.Start(t)
		s.Put(t, "lake", local.root)
		l := bucket(t, s)
		checkObjects(t, l)
		for i := range 3 { // the last one leaves no trace of rank 0 in a shared file
			if _, err := putRows(l, fmt.Sprint("trace ", 2*i), 0, 12, true); err != nil {
				t.Fatal(err)
			}
			checkObjects(t, l)
		}
		if err := l.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkObjects(t, l)
		if sum := compactBucket(t, l); sum.Merged == 0 {
			t.Errorf("%+v", sum)
		}
		if _, err := l.Sweep(-time.Hour); err != nil {
			t.Fatal(err)
		}
		checkListed(t, s, l)
	}
}

// TestDamagedObjects: so it is in a bucket.
func TestDamagedObjects(t *testing.T) {
	hurt := record("trace 2", "job", nil).TraceID
	for name, text := range damagedCommits(hurt) {
		for _, merged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, merged), func(t *testing.T) {
				s := storetest.Start(t)
				l := bucket(t, s)
				putSix(t, l)
				if merged {
					compactBucket(t, l)
				}
				s.Write(t, "victim.txt", []byte("victim"))
				if err := os.Remove(filepath.Join(s.Dir, "lake", commitPath(hurt))); err != nil { // with its checksum
					t.Fatal(err)
				}
				s.Write(t, "lake/"+commitPath(hurt), []byte(text))
				l = bucket(t, s)
				if _, err := l.Sweep(-time.Hour); !OnlyDamaged(err) {
					t.Errorf("sweep: %v", err)
				}
				for i, content := range []string{"trace 6", "trace 2"} {
					if _, err := putRows(l, content, 0, 12, i > 0); err != nil {
						t.Fatal(err)
					}
				}
				checkObjects(t, l)
				if _, err := l.Sweep(-time.Hour); err != nil {
					t.Error(err)
				}
				checkObjects(t, l)
				checkListed(t, s, l)
				if data, err := os.ReadFile(filepath.Join(s.Dir, "victim.txt")); err != nil || string(data) != "victim" {
					t.Errorf("outside of the dataset: %q, %v", data, err)
				}
			})
		}
	}
}

// TestImportWhileMoving imports a trace again while a relocation is between the
// merged file and its commits.
func TestImportWhileMoving(t *testing.T) {
	s := storetest.Start(t)
	l := bucket(t, s)
	putSix(t, l)
	var once sync.Once
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/moves/") {
			once.Do(func() {
				other := bucket(t, s)
				if _, err := putRows(other, "trace 2", 0, 40, true); err != nil {
					t.Error(err)
				}
				if err := other.remove(record("trace 4", "job", nil).TraceID); err != nil {
					t.Error(err)
				}
			})
		}
		return false
	})
	compactBucket(t, l)
	s.Fail(nil)
	if commits, err := l.Commits(); err != nil || len(commits) != 5 {
		t.Errorf("%d traces, %v", len(commits), err)
	}
	compactBucket(t, l)
	checkListed(t, s, l)
}

// TestAskedAgain: where another writer changes a commit between the question
// whether it is replaced and its replacement, the question is asked again.
func TestAskedAgain(t *testing.T) {
	s := storetest.Start(t)
	l := bucket(t, s)
	rec := record("same", "job", nil)
	if _, err := put(l, rec, false); err != nil {
		t.Fatal(err)
	}
	moved := rec
	moved.Source.Path = "/elsewhere"
	var raced atomic.Bool
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, commitPath(rec.TraceID)) && !raced.Swap(true) {
			if _, err := put(bucket(t, s), moved, true); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	txn, err := l.Begin()
	if err != nil {
		t.Fatal(err)
	}
	_, err = txn.Commit(rec, func(old *Commit) bool { return old.Source.Path == rec.Source.Path })
	var dup *DuplicateError
	if !errors.As(err, &dup) || dup.Existing.Source != moved.Source {
		t.Errorf("replaced: %v", err)
	}
}

// whileRemoving calls f when a process is about to remove an object, and tells
// whether that came to pass.
func whileRemoving(s *storetest.S3, rel string, f func()) (came func() bool) {
	var once atomic.Bool
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, rel) && !once.Swap(true) {
			f()
		}
		return false
	})
	return func() bool { s.Fail(nil); return once.Load() }
}

// TestRemovedLate: a part that a process found without a commit is not what another
// process imports in the moment before it is removed.
func TestRemovedLate(t *testing.T) {
	id := record("trace 2", "job", nil).TraceID
	again := func(t *testing.T, l *Lake, n int, replace bool) {
		t.Helper()
		if _, err := putRows(l, "trace 2", 0, n, replace); err != nil {
			t.Error(err)
		}
	}
	for name, meanwhile := range map[string]func(*testing.T, *Lake){
		"replaced twice": func(t *testing.T, l *Lake) {
			again(t, l, 40, true)
			again(t, l, 40, true)
		},
		"removed and imported": func(t *testing.T, l *Lake) {
			if err := l.remove(id); err != nil {
				t.Error(err)
			}
			again(t, l, 40, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.Start(t)
			l := bucket(t, s)
			putSix(t, l)
			c, err := l.readCommit(id)
			if err != nil {
				t.Fatal(err)
			}
			came := whileRemoving(s, c.Files[0].Path, func() { meanwhile(t, bucket(t, s)) })
			if _, err := l.Compact(t.Context(), CompactOptions{TargetBytes: smallTarget}); err != nil {
				t.Fatal(err)
			}
			if !came() {
				t.Error("nothing was removed")
			}
			compactBucket(t, bucket(t, s))
			if _, err := l.Sweep(-time.Hour); err != nil {
				t.Fatal(err)
			}
			checkListed(t, s, bucket(t, s))
		})
	}
	t.Run("swept", func(t *testing.T) {
		s := storetest.Start(t)
		l := bucket(t, s)
		putSix(t, l)
		c, err := l.readCommit(id)
		if err != nil {
			t.Fatal(err)
		}
		// As a writer left it that was killed two days ago.
		if err := os.Remove(filepath.Join(s.Dir, "lake", commitPath(id))); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-48 * time.Hour)
		for _, f := range c.Files {
			if err := os.Chtimes(filepath.Join(s.Dir, "lake", f.Path), old, old); err != nil {
				t.Fatal(err)
			}
		}
		came := whileRemoving(s, c.Files[0].Path, func() { again(t, bucket(t, s), 12, false) })
		if sum, err := bucket(t, s).Sweep(24 * time.Hour); err != nil || sum.Parts != len(c.Files) {
			t.Errorf("%+v, %v", sum, err)
		}
		if !came() {
			t.Error("nothing was removed")
		}
		checkObjects(t, l)
		checkListed(t, s, l)
	})
}

// TestStoreWithoutConditions: a store that does not know conditional writes must
// not be compacted.
func TestStoreWithoutConditions(t *testing.T) {
	s := storetest.Start(t)
	l := bucket(t, s)
	putSix(t, l)
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || r.Header.Get("If-Match") == "" {
			return false
		}
		w.WriteHeader(http.StatusOK)
		return true
	})
	if _, err := l.Compact(t.Context(), CompactOptions{TargetBytes: smallTarget}); err == nil || !strings.Contains(err.Error(), "If-Match") {
		t.Errorf("merged: %v", err)
	}
	s.Fail(nil)
	checkObjects(t, l)
	checkListed(t, s, l)
}

// TestCrowdOfObjects has processes compact, import, replace and remove at once,
// and reads all the time what the commits name.
func TestCrowdOfObjects(t *testing.T) {
	s := storetest.Start(t)
	t.Setenv("TMPDIR", t.TempDir())
	l := bucket(t, s)
	putSix(t, l)
	stop := make(chan struct{})
	var reader, writers sync.WaitGroup
	scans := 0
	reader.Go(func() {
		dir := t.TempDir()
		for {
			select {
			case <-stop:
				return
			default:
			}
			rows, err := rowsByCommits(bucket(t, s), dir, "diagnostics")
			if errors.Is(err, fs.ErrNotExist) || kindOf(err) == store.Changed {
				continue // merged or replaced between listing and opening: the reader says so
			}
			if err != nil {
				t.Error(err)
				return
			}
			scans++
			for i := range 6 {
				if id := record(fmt.Sprint("trace ", i), "job", nil).TraceID; rows[id] != 10+i {
					t.Errorf("%d rows of trace %d", rows[id], i)
				}
			}
		}
	})
	for w := range 3 {
		writers.Go(func() {
			for i := range 3 {
				if err := changeObjects(s.URL("lake"), w == 0, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	reader.Wait()
	if scans == 0 {
		t.Error("nothing was read")
	}
	compactBucket(t, l)
	if _, err := l.Sweep(-time.Hour); err != nil {
		t.Fatal(err)
	}
	checkObjects(t, l)
	checkListed(t, s, l)
}

// changeObjects imports, replaces or removes a trace, and compacts.
func changeObjects(url string, removes bool, i int) error {
	l, err := Create(url, "helper")
	if err != nil {
		return err
	}
	if _, err := putRows(l, fmt.Sprint("content ", rand.IntN(helperSize)), 0, 5, i%2 == 0); err != nil && !errors.As(err, new(*DuplicateError)) {
		return err
	}
	if removes {
		if err := l.remove(record(fmt.Sprint("content ", rand.IntN(helperSize)), "job", nil).TraceID); err != nil {
			return err
		}
	}
	_, err = l.Compact(context.Background(), CompactOptions{TargetBytes: smallTarget})
	return err
}

// TestKilledObjects kills processes that import and compact in a bucket, and
// checks after each that every trace has its rows, once.
func TestKilledObjects(t *testing.T) {
	if url := os.Getenv("TRACELAKE_TEST_BUCKET"); url != "" {
		for i := 0; ; i++ {
			if err := changeObjects(url, i%5 == 0, i); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	s := storetest.Start(t)
	t.Setenv("TMPDIR", t.TempDir())
	putSix(t, bucket(t, s))
	rounds := 8
	if testing.Short() {
		rounds = 4
	}
	shared := 0
	for range rounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledObjects$")
		cmd.Env = append(os.Environ(), "TRACELAKE_TEST_BUCKET="+s.URL("lake"))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		from, limit := s.Requests.Load(), time.Now().Add(20*time.Second)
		for after := int64(60 + rand.IntN(250)); s.Requests.Load() < from+after && time.Now().Before(limit); {
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() == 1 {
			t.Fatal(err)
		}
		l := bucket(t, s)
		checkObjects(t, l)
		commits, err := l.Commits()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commits {
			for _, f := range c.Files {
				if f.Shared {
					shared++
				}
			}
		}
	}
	if shared == 0 {
		t.Error("no round got as far as a merged file")
	}
	l := bucket(t, s)
	compactBucket(t, l)
	if _, err := l.Sweep(-time.Hour); err != nil {
		t.Fatal(err)
	}
	checkObjects(t, l)
	checkListed(t, s, l)
}
