package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"tracelake/schema"
	"tracelake/schema/columnar"
)

const smallTarget = 1 << 20 // every part of these tests is smaller

// putRows commits a trace with real files: n rows of diagnostics and one of
// traces, which name the trace they belong to.
func putRows(l *Lake, content string, rank int64, n int, replace bool) (Commit, error) {
	rec := record(content, "job", &rank)
	rec.Rows = map[string]int64{"diagnostics": int64(n), "traces": 1}
	txn, err := l.Begin()
	if err != nil {
		return Commit{}, err
	}
	defer txn.Abort()
	for table, rows := range rec.Rows {
		if err := writeRows(txn, table, rec.TraceID, int(rows)); err != nil {
			return Commit{}, err
		}
	}
	return txn.Commit(rec, ifAsked(replace))
}

func writeRows(txn *Txn, table, id string, n int) error {
	out, err := txn.Create(table)
	if err != nil {
		return err
	}
	t := schema.TableByName(table)
	f, err := columnar.Create(out, t, columnar.Options{})
	if err != nil {
		return err
	}
	cols := make([]schema.Vector, len(t.Columns))
	for c := range cols {
		if decl := &t.Columns[c]; !decl.Nullable && c > 0 {
			for r := range n {
				v := int64(r)
				switch decl.Type {
				case schema.String:
					cols[c].Dict = []string{id}
					v = 0
				case schema.Bool:
					v = 0
				}
				cols[c].Vals = append(cols[c].Vals, v)
			}
		}
	}
	chunk, err := columnar.NewEncoder(t, columnar.Options{}).Encode(n, cols)
	if err != nil {
		return err
	}
	if err := f.Append(chunk); err != nil {
		return err
	}
	_, _, err = f.Close(id, nil)
	return err
}

// textColumns are two columns of each table: the trace and a text that names
// it.
var textColumns = map[string]string{"diagnostics": "message", "traces": "run"}

// scan reads all parts of a table as a reader does that knows nothing but the
// directory, and returns the rows by trace. A file that went between listing
// and opening is fs.ErrNotExist.
func scan(root, table string) (map[string]int, error) {
	rows := map[string]int{}
	err := filepath.WalkDir(filepath.Join(root, table), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && hidden(e.Name()) {
			return filepath.SkipDir
		}
		if err != nil || e.IsDir() || hidden(e.Name()) {
			return err
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		st, err := in.Stat()
		if err != nil {
			return err
		}
		f, err := parquet.OpenFile(in, st.Size())
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		id, ok1 := f.Schema().Lookup("trace_id")
		text, ok2 := f.Schema().Lookup(textColumns[table])
		if !ok1 || !ok2 {
			return fmt.Errorf("%s: columns are missing", path)
		}
		r := parquet.NewReader(f)
		defer r.Close()
		buf := make([]parquet.Row, 64)
		for {
			n, err := r.ReadRows(buf)
			for _, row := range buf[:n] {
				if a, b := row[id.ColumnIndex].String(), row[text.ColumnIndex].String(); a != b {
					return fmt.Errorf("%s: a row of trace %s says %s", path, a, b)
				}
				rows[row[id.ColumnIndex].String()]++
			}
			if err != nil {
				return nil //nolint:nilerr // the end
			}
		}
	})
	return rows, err
}

// checkRows compares what stands below a table with what the commits say.
func checkRows(t *testing.T, l *Lake, table string) {
	t.Helper()
	commits, err := l.Commits()
	if err != nil {
		t.Fatal(err)
	}
	got, err := scan(l.root, table)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || len(commits) > 0) {
		t.Fatal(err)
	}
	for _, c := range commits {
		if !l.intact(&c) {
			t.Fatalf("trace %s is not complete: %+v", c.TraceID, c.Files)
		}
		for _, f := range c.Files {
			if f.Table == table {
				if int64(got[c.TraceID]) != f.Rows {
					t.Errorf("%s: %d rows of trace %s, committed %d", table, got[c.TraceID], c.TraceID, f.Rows)
				}
				delete(got, c.TraceID)
			}
		}
	}
	if len(got) != 0 {
		t.Errorf("%s: rows of traces that are not committed: %v", table, got)
	}
}

func compact(t *testing.T, l *Lake) Compacted {
	t.Helper()
	sum, err := l.Compact(context.Background(), CompactOptions{TargetBytes: smallTarget})
	if err != nil {
		t.Fatal(err)
	}
	for table := range textColumns {
		checkRows(t, l, table)
	}
	if _, temps := tree(t, l.root); len(temps) != 0 {
		t.Errorf("left behind: %v", temps)
	}
	return sum
}

// compacted makes a lake of six traces of two ranks, compacted.
func compacted(t *testing.T) *Lake {
	t.Helper()
	l := create(t, t.TempDir())
	for i := range 6 {
		if _, err := putRows(l, fmt.Sprint("trace ", i), int64(i%2), 10+i, false); err != nil {
			t.Fatal(err)
		}
	}
	if sum := compact(t, l); sum.Merged != 12 || sum.Into != 3 || sum.Busy != 0 || sum.Left != 0 {
		t.Fatalf("%+v", sum)
	}
	return l
}

// files returns the committed parts of one table as paths of the operating
// system, in the order of Commits.
func (l *Lake) files(table string) ([]string, error) {
	commits, err := l.Commits()
	var out []string
	seen := map[string]bool{}
	for _, c := range commits {
		for _, f := range c.Files {
			if f.Table == table && !seen[f.Path] {
				seen[f.Path] = true
				out = append(out, l.Abs(f.Path))
			}
		}
	}
	return out, err
}

func TestCompact(t *testing.T) {
	l := compacted(t)
	if sum := compact(t, l); sum.Merged != 0 {
		t.Errorf("again: %+v", sum)
	}
	// Everything is known to be done, in this process and in another one.
	for _, l := range []*Lake{l, create(t, l.root)} {
		for i := range 6 {
			rec := record(fmt.Sprint("trace ", i), "job", new(int64(i%2)))
			if _, ok := l.Done(rec.Source, ""); !ok {
				t.Errorf("trace %d is not done", i)
			}
		}
		if files, err := l.files("traces"); err != nil || len(files) != 1 {
			t.Error(files, err)
		}
	}
	// New traces come beside the merged files, and into them the next time.
	if _, err := putRows(l, "late", 0, 3, false); err != nil {
		t.Fatal(err)
	}
	checkRows(t, l, "diagnostics")
	if sum := compact(t, l); sum.Merged != 4 || sum.Into != 2 {
		t.Errorf("with a late trace: %+v", sum)
	}
	if _, err := putRows(l, "late", 0, 3, false); !errors.As(err, new(*DuplicateError)) {
		t.Error(err)
	}
	if _, err := l.Sweep(-time.Hour); err != nil {
		t.Fatal(err)
	}
	checkRows(t, l, "diagnostics")
}

// TestCompactRuns: other runs and files of the target size stay as they are.
func TestCompactRuns(t *testing.T) {
	l := create(t, t.TempDir())
	for i := range 4 {
		if _, err := putRows(l, fmt.Sprint("trace ", i), 0, 5, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []CompactOptions{{TargetBytes: smallTarget, Runs: []string{"another"}}, {TargetBytes: 1}} {
		sum, err := l.Compact(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if parts, _ := tree(t, l.root); sum.Merged > 4 || slices.ContainsFunc(parts, func(p string) bool {
			return strings.HasPrefix(p, "diagnostics") && !slices.Contains(committed(t, l), p)
		}) {
			t.Errorf("%+v: %v", sum, parts)
		}
		checkRows(t, l, "diagnostics")
	}
	if files, err := l.files("diagnostics"); err != nil || len(files) != 4 {
		t.Error(files, err)
	}
}

// deltaLog is a file that another program keeps beside parts, and its content.
const deltaLog = "traces/_delta_log/00000000000000000000.json"

func writeDeltaLog(t *testing.T, l *Lake) {
	t.Helper()
	for _, name := range []string{deltaLog, "traces/_delta_log/part-0123456789ab.parquet", "traces/.hidden/x", "traces/_hidden"} {
		p := l.Abs(name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func checkDeltaLog(t *testing.T, l *Lake) {
	t.Helper()
	for _, name := range []string{deltaLog, "traces/_delta_log/part-0123456789ab.parquet", "traces/.hidden/x", "traces/_hidden"} {
		if data, err := os.ReadFile(l.Abs(name)); err != nil || string(data) != name {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// TestHidden: what other programs keep beside parts, in names that readers pass
// over, stays when directories are swapped, files are swept and traces replaced.
func TestHidden(t *testing.T) {
	l := create(t, t.TempDir())
	for i := range 4 {
		if _, err := putRows(l, fmt.Sprint("trace ", i), 0, 5, false); err != nil {
			t.Fatal(err)
		}
	}
	writeDeltaLog(t, l)
	if sum, err := l.Compact(t.Context(), CompactOptions{TargetBytes: smallTarget}); err != nil || sum.Merged != 8 {
		t.Fatalf("%+v, %v", sum, err)
	}
	checkDeltaLog(t, l)
	if _, err := putRows(l, "trace 2", 0, 40, true); err != nil { // splits a file
		t.Fatal(err)
	}
	if _, err := l.Sweep(-time.Hour); err != nil {
		t.Fatal(err)
	}
	checkDeltaLog(t, l)
	checkRows(t, l, "traces")
	if err := os.MkdirAll(l.Abs("traces/visible"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Compact(t.Context(), CompactOptions{TargetBytes: smallTarget}); err == nil || !strings.Contains(err.Error(), "visible") {
		t.Errorf("a directory that readers look into: %v", err)
	}
}

// TestReplaceShared: a trace that shares files is replaced, and another one
// removed, and the rows of the rest stay.
func TestReplaceShared(t *testing.T) {
	l := compacted(t)
	if _, err := putRows(l, "trace 2", 0, 40, true); err != nil {
		t.Fatal(err)
	}
	checkRows(t, l, "diagnostics")
	checkRows(t, l, "traces")
	if err := l.remove(record("trace 4", "job", nil).TraceID); err != nil {
		t.Fatal(err)
	}
	if err := l.remove(record("trace 4", "job", nil).TraceID); err != nil {
		t.Fatal(err)
	}
	checkRows(t, l, "diagnostics")
	checkRows(t, l, "traces")
	if commits, err := l.Commits(); err != nil || len(commits) != 5 {
		t.Error(len(commits), err)
	}
	compact(t, l)
}

// TestDamagedShared: traces whose common file is cut off or gone count as not
// imported, and importing them again heals the dataset.
func TestDamagedShared(t *testing.T) {
	for _, how := range []func(string) error{os.Remove, func(p string) error { return os.Truncate(p, 100) }} {
		l := compacted(t)
		files, err := l.files("diagnostics")
		if err != nil {
			t.Fatal(err)
		}
		if err := how(files[0]); err != nil {
			t.Fatal(err)
		}
		l = create(t, l.root)
		redone := 0
		for i := range 6 {
			rec := record(fmt.Sprint("trace ", i), "job", new(int64(i%2)))
			if _, ok := l.Done(rec.Source, ""); ok {
				continue
			}
			redone++
			if _, err := putRows(l, fmt.Sprint("trace ", i), int64(i%2), 10+i, false); err != nil {
				t.Fatal(err)
			}
		}
		if redone != 3 {
			t.Errorf("%d traces were imported again", redone)
		}
		if _, err := l.Sweep(-time.Hour); err != nil {
			t.Fatal(err)
		}
		checkRows(t, l, "diagnostics")
		checkRows(t, l, "traces")
	}
}

// TestScanWhileCompacting reads the directories all the time while they are
// compacted and filled.
func TestScanWhileCompacting(t *testing.T) {
	l := create(t, t.TempDir())
	const base = 8
	for i := range base {
		if _, err := putRows(l, fmt.Sprint("trace ", i), 0, 10, false); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	scans := 0
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			rows, err := scan(l.root, "diagnostics")
			if errors.Is(err, fs.ErrNotExist) {
				continue // swapped between listing and opening: the reader says so
			}
			if err != nil {
				t.Error(err)
				return
			}
			scans++
			for i := range base {
				if id := record(fmt.Sprint("trace ", i), "job", nil).TraceID; rows[id] != 10 {
					t.Errorf("a scan found %d rows of trace %d", rows[id], i)
				}
			}
		}
	})
	for i := range 12 {
		if _, err := putRows(l, fmt.Sprint("late ", i), 0, 3, false); err != nil {
			t.Fatal(err)
		}
		compact(t, l)
	}
	close(stop)
	wg.Wait()
	if scans == 0 {
		t.Error("nothing was scanned")
	}
}

// compactForever imports, replaces, removes and compacts until it is killed.
func compactForever(root string) {
	fail := func(err error) {
		if err != nil && !errors.As(err, new(*DuplicateError)) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	for i := 0; ; i++ {
		l, err := Create(root, "helper")
		fail(err)
		_, err = putRows(l, fmt.Sprint("content ", rand.IntN(helperSize)), 0, 5, i%3 == 0)
		fail(err)
		if i%5 == 0 {
			fail(l.remove(record(fmt.Sprint("content ", rand.IntN(helperSize)), "job", nil).TraceID))
		}
		_, err = l.Compact(context.Background(), CompactOptions{TargetBytes: smallTarget})
		fail(err)
	}
}

// TestKilledCompaction kills two processes that import and compact.
func TestKilledCompaction(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	root := t.TempDir()
	log := false
	shared := 0 // traces that survived in merged files
	for range rounds {
		runAndKill(t, "compact", root, time.Duration(30+rand.IntN(150))*time.Millisecond)
		if _, err := os.Stat(filepath.Join(root, MetaDir, formatFile)); err != nil {
			continue // killed before there was a lake
		}
		l := create(t, root)
		if _, err := l.Sweep(-time.Hour); err != nil { // files without a commit
			t.Fatal(err)
		}
		if _, err := os.Stat(l.Abs("traces")); err == nil {
			if log {
				checkDeltaLog(t, l)
			}
			writeDeltaLog(t, l)
			log = true
		}
		checkRows(t, l, "diagnostics")
		checkRows(t, l, "traces")
		commits, err := l.Commits()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commits {
			if slices.ContainsFunc(c.Files, func(f File) bool { s, _ := l.sharesRows(f); return s }) {
				shared++
			}
		}
	}
	if shared == 0 {
		t.Error("no round got as far as a merged file")
	}
}
