package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func create(t testing.TB, root string) *Lake {
	t.Helper()
	l, err := Create(root, "test")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// record describes a trace whose content is the given text.
func record(content, run string, rank *int64) Record {
	sha := digestOf(content)
	id, err := TraceID(sha)
	if err != nil {
		panic(err)
	}
	return Record{
		TraceID: id, ContentDigest: sha, Run: run, Rank: rank, Outcome: OutcomeOK,
		Source: Source{Path: "/in/" + content, Bytes: int64(len(content)), MTimeNS: 7},
		Rows:   map[string]int64{"traces": 1, "launches": 2},
	}
}

// put writes two small tables and commits them.
func put(l *Lake, rec Record, replace bool) (Commit, error) {
	txn, err := l.Begin()
	if err != nil {
		return Commit{}, err
	}
	defer txn.Abort()
	for _, table := range []string{"traces", "launches"} {
		f, err := txn.Create(table)
		if err != nil {
			return Commit{}, err
		}
		if _, err := f.WriteString(table + rec.Options + rec.TraceID); err != nil {
			return Commit{}, err
		}
	}
	return txn.Commit(rec, ifAsked(replace))
}

// ifAsked is what Commit is given to replace everything or nothing.
func ifAsked(replace bool) func(*Commit) bool {
	if replace {
		return Always
	}
	return nil
}

// tree lists the files below the tables, and the unfinished ones.
func tree(t *testing.T, root string) (parts, temps []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch {
		case strings.Contains(rel, "/"+tempPrefix):
			temps = append(temps, rel)
		case !e.IsDir() && !strings.HasPrefix(rel, MetaDir):
			parts = append(parts, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return parts, temps
}

func committed(t *testing.T, l *Lake) (paths []string) {
	t.Helper()
	commits, err := l.Commits()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commits {
		for _, f := range c.Files {
			paths = append(paths, f.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

func TestCommitAndResume(t *testing.T) {
	root := filepath.Join(t.TempDir(), "new", "lake")
	l := create(t, root)
	rec := record("a", "job", new(int64(3)))
	c, err := put(l, rec, false)
	if err != nil {
		t.Fatal(err)
	}
	parts, temps := tree(t, root)
	if !slices.Equal(parts, committed(t, l)) || len(parts) != 2 || len(temps) != 0 {
		t.Fatalf("parts %v, temporary %v", parts, temps)
	}
	name := PartName(rec.ContentDigest, "", "job", 3)
	want := "launches/run=job/rank=3/" + name
	if c.Files[0].Path != "traces/"+name || c.Files[1].Path != want || c.Files[0].Rows != 1 || c.Files[1].Rows != 2 || c.Files[0].Bytes != 22 {
		t.Fatalf("files %+v, want %s first", c.Files, want)
	}
	again, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := again.Done(rec.Source, ""); !ok {
		t.Error("the source is not done")
	}
	if _, ok := again.Done(rec.Source, "other"); ok {
		t.Error("done with other options")
	}
	later := rec.Source
	later.MTimeNS++
	if _, ok := again.Done(later, ""); ok {
		t.Error("done after the file changed")
	}
	if got, ok := again.DoneContent(rec.ContentDigest); !ok || got.TraceID != rec.TraceID || *got.Rank != 3 {
		t.Errorf("content: %+v, %v", got, ok)
	}
	if _, err := again.Begin(); err == nil {
		t.Error("a lake opened for reading takes a transaction")
	}
	if err := os.Remove(again.Abs(want)); err != nil {
		t.Fatal(err)
	}
	if _, ok := again.Done(rec.Source, ""); ok {
		t.Error("done although a part is gone")
	}
	if _, err := put(l, rec, false); err != nil {
		t.Errorf("a damaged trace must be written again: %v", err)
	}
}

func TestTwinIsDuplicate(t *testing.T) {
	root := t.TempDir()
	l := create(t, root)
	first := record("same", "job", nil)
	if _, err := put(l, first, false); err != nil {
		t.Fatal(err)
	}
	twin := first
	twin.Source.Path = "/elsewhere"
	twin.Run = "other"
	_, err := put(l, twin, false)
	var dup *DuplicateError
	if !errors.As(err, &dup) || dup.Existing.Source.Path != first.Source.Path {
		t.Fatalf("error %v", err)
	}
	if parts, temps := tree(t, root); len(parts) != 2 || len(temps) != 0 {
		t.Fatalf("parts %v, temporary %v", parts, temps)
	}
}

func TestReplace(t *testing.T) {
	root := t.TempDir()
	l := create(t, root)
	rec := record("x", "job", new(int64(0)))
	if _, err := put(l, rec, false); err != nil {
		t.Fatal(err)
	}
	reader, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	before := committed(t, reader)
	for _, change := range []func(){func() {}, func() { rec.Options = "detail=kernel" }, func() { rec.Run = "moved" }} {
		change()
		if _, err := put(l, rec, true); err != nil {
			t.Fatal(err)
		}
		parts, temps := tree(t, root)
		if now := committed(t, reader); !slices.Equal(parts, now) || len(temps) != 0 {
			t.Fatalf("parts %v, committed %v, temporary %v", parts, now, temps)
		}
	}
	if slices.Equal(before, committed(t, reader)) {
		t.Error("another run has the same paths")
	}
}

// TestReplaceByOwnOnly: of writers of one content that would each replace what came
// from their own path, one has the content and all others are its twins, however
// many look before the first one commits.
func TestReplaceByOwnOnly(t *testing.T) {
	l := create(t, t.TempDir())
	const writers = 8
	var wg sync.WaitGroup
	var twins atomic.Int64
	for i := range writers {
		wg.Go(func() {
			rec := record("same", "job", nil)
			rec.Source.Path = fmt.Sprint("/in/", i)
			txn, err := l.Begin()
			if err == nil {
				_, err = txn.Commit(rec, func(old *Commit) bool { return old.Source.Path == rec.Source.Path })
			}
			var dup *DuplicateError
			switch {
			case errors.As(err, &dup) && dup.Existing.Source.Path != rec.Source.Path:
				twins.Add(1)
			case err != nil:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if twins.Load() != writers-1 {
		t.Errorf("%d of %d are twins", twins.Load(), writers)
	}
}

func TestRejection(t *testing.T) {
	root := t.TempDir()
	l := create(t, root)
	rec := record("bad", "job", nil)
	rec.TraceID, rec.Outcome = RejectedTraceID(rec.ContentDigest, rec.Source.Path), OutcomeRejected
	if _, err := put(l, rec, false); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Done(rec.Source, ""); !ok {
		t.Error("a rejected input is read again")
	}
	if _, ok := l.DoneContent(rec.ContentDigest); ok {
		t.Error("a rejected input counts as content")
	}
	// Another input holds the same bytes, and fails, too.
	twin := rec
	twin.Source.Path += ".twin"
	twin.TraceID = RejectedTraceID(twin.ContentDigest, twin.Source.Path)
	c, err := put(l, twin, false)
	if err != nil {
		t.Fatal(err)
	}
	if parts, _ := tree(t, root); len(parts) != 4 {
		t.Errorf("parts of two that failed: %v", parts)
	}
	if _, err := l.Commits(); err != nil {
		t.Fatal(err)
	}
	if err := l.remove(c.TraceID); err != nil {
		t.Fatal(err)
	}
	if parts, _ := tree(t, root); len(parts) != 2 {
		t.Errorf("parts %v", parts)
	}
}

// remove takes a trace out of the lake, if it is there.
func (l *Lake) remove(traceID string) error {
	c, err := l.readCommit(traceID)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = l.take(&c)
	}
	return err
}

// TestOutdate: what a file held before goes when it holds something else, unless
// that would lose something.
func TestOutdate(t *testing.T) {
	const path, elsewhere = "/in/t.json", "/in/copy.json"
	old := record("old", "job", new(int64(1)))
	old.Source.Path = path
	change := func(r Record, f func(*Record)) *Record { f(&r); return &r }
	twin := change(record("twin", "job", nil), func(r *Record) { r.Source.Path, r.DuplicateOf = elsewhere, old.TraceID })
	job := func(attempt string) func(*Record) {
		return func(r *Record) { r.Job = &Job{Dir: "/out", Attempt: attempt} }
	}
	rejected := func(r *Record) { r.Outcome = OutcomeRejected }
	for name, x := range map[string]struct {
		old        *Record
		now        func(*Record)
		twin       *Record
		again      bool
		jobs       string // the latest attempt that is in the lake as a whole
		gone, kept bool
	}{
		"completed":                     {gone: true},
		"completed, rank unknown":       {now: func(r *Record) { r.Rank = nil }, gone: true},
		"another run":                   {now: func(r *Record) { r.Run = "other" }},
		"another rank":                  {now: func(r *Record) { r.Rank = new(int64(2)) }},
		"another file":                  {now: func(r *Record) { r.Source.Path = elsewhere }},
		"now rejected":                  {now: rejected},
		"rejected before":               {old: change(old, rejected), now: func(r *Record) { r.Run = "other" }, gone: true},
		"rejected twice":                {old: change(old, rejected), now: rejected, gone: true},
		"was a twin":                    {old: change(old, func(r *Record) { r.DuplicateOf = twin.TraceID }), gone: true},
		"has a twin":                    {twin: twin, kept: true},
		"has a twin, which is at hand":  {twin: twin, again: true, gone: true},
		"superseded":                    {old: change(old, job("1")), now: job("2"), jobs: "2", gone: true},
		"superseded, has a twin":        {old: change(old, job("1")), now: job("2"), jobs: "2", twin: twin, gone: true},
		"of the latest attempt":         {old: change(old, job("2")), now: rejected, jobs: "2"},
		"another attempt of a job":      {old: change(old, job("1")), now: job("2")},
		"the same attempt of a job":     {old: change(old, job("1")), now: job("1"), gone: true},
		"of a job, imported on its own": {old: change(old, job("1"))},
	} {
		t.Run(name, func(t *testing.T) {
			l := create(t, t.TempDir())
			if x.old == nil {
				x.old = &old
			}
			now := record("new", "job", new(int64(1)))
			now.Source.Path = path
			if x.now != nil {
				x.now(&now)
			}
			before := map[string][]string{}
			for _, rec := range []*Record{x.old, x.twin, &now} {
				if rec == nil {
					continue
				}
				if _, err := put(l, *rec, false); err != nil {
					t.Fatal(err)
				}
				if rec != &now {
					before[rec.Source.Path] = append(before[rec.Source.Path], rec.TraceID)
				}
			}
			if held, err := l.Holding(map[string]bool{path: true}); err != nil || !slices.Contains(held[path], x.old.TraceID) || held[elsewhere] != nil {
				t.Errorf("holding %v, %v", held, err)
			}
			o := Outdated{
				Before: before, Now: map[string]map[string]bool{path: {now.TraceID: true}},
				Again: func(*Commit) bool { return x.again }, Old: func(_, _ *Commit) bool { return false },
			}
			if x.jobs != "" {
				o.Jobs = map[Job]map[string]bool{{Dir: "/out", Attempt: x.jobs}: {now.TraceID: true}}
			}
			gone, err := l.Outdate(o)
			if err != nil || (len(gone.Replaced) == 1) != (x.gone && x.jobs == "") || (len(gone.Superseded) == 1) != (x.gone && x.jobs != "") ||
				(len(gone.Needed) == 1) != x.kept || (len(gone.Twins) == 1) != (x.twin != nil && !x.kept) {
				t.Errorf("%+v, %v", gone, err)
			}
			if _, err := l.readCommit(x.old.TraceID); errors.Is(err, os.ErrNotExist) != x.gone {
				t.Error(err)
			}
			// What came meanwhile is not known to be older.
			o = Outdated{Now: map[string]map[string]bool{path: {old.TraceID: true}}}
			if gone, err := l.Outdate(o); len(gone.Replaced)+len(gone.Needed)+len(gone.Superseded) > 0 || err != nil {
				t.Errorf("%+v, %v", gone, err)
			}
		})
	}
}

// TestOutdateShared: rows of other traces stay in the files that a trace shared
// with them, and a trace that was imported again from elsewhere meanwhile stays.
func TestOutdateShared(t *testing.T) {
	l := compacted(t)
	was := record("trace 2", "job", nil)
	now, err := putRows(l, "new", 0, 7, false)
	if err != nil {
		t.Fatal(err)
	}
	now.Source.Path = was.Source.Path
	if err := l.write(commitPath(now.TraceID), &now, replaceFile); err != nil {
		t.Fatal(err)
	}
	before := map[string][]string{was.Source.Path: {was.TraceID}}
	held := map[string]map[string]bool{was.Source.Path: {now.TraceID: true}}
	if gone, err := l.Outdate(Outdated{Before: before, Now: held}); err != nil || len(gone.Replaced) != 1 {
		t.Fatal(gone, err)
	}
	if commits, err := l.Commits(); err != nil || len(commits) != 6 {
		t.Errorf("%d traces, %v", len(commits), err)
	}
	compact(t, l)
	c, err := l.readCommit(now.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	c.Source.MTimeNS++
	if took, err := l.take(&c); took || err != nil {
		t.Error(took, err)
	}
}

// TestTwinWithoutRows: a twin counts as done as long as the trace is there that has
// its rows.
func TestTwinWithoutRows(t *testing.T) {
	l := create(t, t.TempDir())
	of, twin := record("same", "job", nil), record("twin", "job", nil)
	twin.DuplicateOf = of.TraceID
	for _, rec := range []Record{of, twin} {
		if _, err := put(l, rec, false); err != nil {
			t.Fatal(err)
		}
	}
	other := create(t, l.root)
	for _, want := range []bool{true, false} {
		if _, ok := other.Done(twin.Source, ""); ok != want {
			t.Errorf("done: %v, want %v", ok, want)
		}
		if err := l.remove(of.TraceID); err != nil {
			t.Fatal(err)
		}
		if err := other.Refresh(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRanks(t *testing.T) {
	l := create(t, t.TempDir())
	for i, rank := range []int64{0, 2, 2, 5} {
		rec := record(string(rune('a'+i)), "job", new(rank))
		rec.WorldSize = new(int64(8))
		if _, err := put(l, rec, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []string{"job", "other"} {
		if _, err := put(l, record(run, run, nil), false); err != nil {
			t.Fatal(err)
		}
	}
	r, err := l.RanksOf("job")
	if err != nil {
		t.Fatal(err)
	}
	first, total := r.Missing()
	if !slices.Equal(r.Repeated(), []int64{2}) || !slices.Equal(first, []int64{1, 3, 4, 6, 7}) || total != 5 || len(r.Unknown) != 1 {
		t.Errorf("repeated %v, missing %v of %d, unknown %v", r.Repeated(), first, total, r.Unknown)
	}
	huge := Ranks{WorldSizes: map[int64][]string{1 << 62: nil}}
	if first, total := huge.Missing(); len(first) != maxMissing || total != 1<<62 {
		t.Errorf("%d of %d", len(first), total)
	}
}

func TestForeignDirectories(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(full, "test"); !errors.Is(err, ErrNotLake) || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("full directory: %v", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotLake) {
		t.Errorf("empty directory: %v", err)
	}
	if _, err := Open(filepath.Join(full, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := Create(filepath.Join(full, "thesis.tex"), "test"); err == nil {
		t.Error("a file is taken for a lake")
	}
	for text, want := range map[string]error{
		`{"format":"tracelake","schema_version":999}`: ErrNewer,
		`{"format":"iceberg","schema_version":1}`:     ErrNotLake,
	} {
		root := t.TempDir()
		create(t, root)
		if err := os.WriteFile(filepath.Join(root, MetaDir, formatFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func() error{
			func() error { _, err := Open(root); return err },
			func() error { _, err := Create(root, "test"); return err },
		} {
			if err := open(); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", text, err, want)
			}
		}
	}
}

func TestBadRecords(t *testing.T) {
	root := t.TempDir()
	l := create(t, root)
	for name, change := range map[string]func(*Record){
		"trace ID": func(r *Record) { r.TraceID = "../../../../x" },
		"run":      func(r *Record) { r.Run = "../x" },
		"rank":     func(r *Record) { r.Rank = new(int64(-1)) },
		"twin":     func(r *Record) { r.DuplicateOf = "../../x" },
	} {
		rec := record("x", "job", nil)
		change(&rec)
		if _, err := put(l, rec, false); err == nil {
			t.Errorf("a bad %s is taken", name)
		}
	}
	evil := record("y", "job", nil)
	text := `{"trace_id":"` + evil.TraceID + `","files":[{"path":"../../etc/passwd"}]}`
	if err := os.WriteFile(l.Abs(commitPath(evil.TraceID)), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if commits, err := l.Commits(); err == nil || len(commits) != 0 {
		t.Errorf("commits %v, %v", commits, err)
	}
	if parts, temps := tree(t, root); len(parts) != 0 || len(temps) != 0 {
		t.Errorf("parts %v, temporary %v", parts, temps)
	}
}

// damagedCommits are what may be found in the place of a commit: nothing that it
// names may be touched.
func damagedCommits(id string) map[string]string {
	return map[string]string{
		"empty": "", "cut": `{"trace_id":"` + id + `","run":"job","fil`, "other": `{"trace_id":"0123456789abcdef"}`,
		"leading out": `{"trace_id":"` + id + `","run":"job","files":[{"table":"traces","path":"../victim.txt","bytes":6}]}`,
	}
}

// TestDamagedCommit: a commit that is damaged keeps nobody from importing other
// files, and no part is removed, until the import of its own input heals it.
func TestDamagedCommit(t *testing.T) {
	hurt := record("trace 1", "job", nil).TraceID
	for name, text := range damagedCommits(hurt) {
		for _, merged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, merged), func(t *testing.T) {
				l := create(t, filepath.Join(t.TempDir(), "lake"))
				for i := range 3 {
					if _, err := putRows(l, fmt.Sprint("trace ", i), 0, 10, false); err != nil {
						t.Fatal(err)
					}
				}
				if merged {
					compact(t, l)
				}
				victim := filepath.Join(filepath.Dir(l.root), "victim.txt")
				for file, text := range map[string]string{victim: "victim", l.Abs(commitPath(hurt)): text} {
					if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				before, _ := tree(t, l.root)
				l = create(t, l.root)
				if err := l.Tidy(-time.Hour); err != nil {
					t.Error(err)
				}
				dead := l.meta(tempPrefix + hostName() + "-0123456789ab")
				if err := os.Mkdir(dead, 0o755); err != nil {
					t.Fatal(err)
				}
				if s, err := l.Sweep(-time.Hour); !OnlyDamaged(err) || !strings.Contains(err.Error(), hurt) || s.Parts != 0 || s.Transactions != 1 {
					t.Errorf("sweep: %+v, %v", s, err)
				}
				if after, _ := tree(t, l.root); !slices.Equal(before, after) {
					t.Errorf("parts %v, before %v", after, before)
				}
				if _, err := putRows(l, "trace 3", 0, 10, false); err != nil {
					t.Errorf("another trace: %v", err)
				}
				if _, err := putRows(l, "trace 1", 0, 10, false); err != nil {
					t.Fatalf("its own input: %v", err)
				}
				if s, err := l.Sweep(-time.Hour); err != nil || s.Parts != 0 {
					t.Errorf("sweep: %+v, %v", s, err)
				}
				checkRows(t, l, "diagnostics")
				checkRows(t, l, "traces")
				if commits, err := l.Commits(); err != nil || len(commits) != 4 {
					t.Errorf("%d traces, %v", len(commits), err)
				}
				if data, err := os.ReadFile(victim); err != nil || string(data) != "victim" {
					t.Errorf("outside of the dataset: %q, %v", data, err)
				}
			})
		}
	}
}

func TestAbortAndSweep(t *testing.T) {
	root := t.TempDir()
	l := create(t, root)
	txn, err := l.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Create("traces"); err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Create("traces"); err == nil {
		t.Error("one table twice")
	}
	if _, err := txn.Create("nonsense"); err == nil {
		t.Error("an unknown table")
	}
	// A sweep by the same or another process leaves a living writer alone.
	if s, err := create(t, root).Sweep(0); err != nil || s != (Swept{}) {
		t.Errorf("swept %+v, %v", s, err)
	}
	if err := txn.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Commit(record("x", "job", nil), nil); !errors.Is(err, ErrFinished) {
		t.Errorf("commit after abort: %v", err)
	}
	// Another machine's transaction goes by its age alone.
	foreign := l.meta(tempPrefix + "elsewhere-0123")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []time.Duration{time.Hour, -time.Hour} {
		s, err := l.Sweep(limit)
		if want := limit < 0; err != nil || (s.Transactions == 1) != want {
			t.Errorf("swept %+v, %v, want %v", s, err, want)
		}
	}
	if _, temps := tree(t, root); len(temps) != 0 {
		t.Errorf("temporary %v", temps)
	}
}

// TestHostsAlike: a transaction belongs to the host that made it, also where the
// name of another host begins with the name of this one.
func TestHostsAlike(t *testing.T) {
	l := create(t, t.TempDir())
	for host, goes := range map[string]bool{hostName(): true, hostName() + "-2": false, hostName() + "-0123456789ab": false} {
		dir := l.meta(tempPrefix + host + "-0123456789ab")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Sweep(time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) != goes {
			t.Errorf("transaction of %s: %v", host, err)
		}
	}
}

// TestSpare: a spare file has no name, so that neither Commit nor a kill leaves
// anything of it, and can be read until it is closed.
func TestSpare(t *testing.T) {
	root := t.TempDir()
	l := create(t, root)
	txn, err := l.Begin()
	if err != nil {
		t.Fatal(err)
	}
	f, err := txn.Spare()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("rows"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(txn.dir); err != nil || len(left) != 0 {
		t.Errorf("the directory of the transaction holds %v, %v", left, err)
	}
	if err := txn.Abort(); err != nil {
		t.Fatal(err)
	}
	if parts, temps := tree(t, root); len(parts)+len(temps) != 0 {
		t.Errorf("left: %v %v", parts, temps)
	}
	got := make([]byte, 4)
	if _, err := f.ReadAt(got, 0); err != nil || string(got) != "rows" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := txn.Spare(); !errors.Is(err, ErrFinished) {
		t.Errorf("after the end: %v", err)
	}
}
