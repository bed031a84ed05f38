package convert

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/internal/store/storetest"
	"tracelake/schema/columnar"
	"tracelake/schema/lake"
)

const (
	demo    = "../testdata/demo"
	visible = "../testdata/visible"
)

// mustRun converts inputs and returns the reports by base name.
func mustRun(t *testing.T, o Options, inputs ...string) (map[string]Report, Summary) {
	t.Helper()
	o.Writer = "tracelake test"
	found, err := Discover(inputs)
	if err != nil {
		t.Fatal(err)
	}
	reports := map[string]Report{}
	sum, err := Run(context.Background(), found, o, func(r Report) { reports[filepath.Base(r.Path)] = r })
	if err != nil {
		t.Fatal(err)
	}
	return reports, sum
}

// parts returns the digests of the files of a dataset below its tables.
func parts(t *testing.T, lake string, tables ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(lake, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(p, ".parquet") {
			return err
		}
		rel, _ := filepath.Rel(lake, p)
		for _, t := range tables {
			if strings.HasPrefix(rel, t+string(filepath.Separator)) {
				return nil
			}
		}
		b, err := os.ReadFile(p)
		out[rel] = fmt.Sprintf("%d bytes %x", len(b), sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t *testing.T, what string, a, b map[string]string) {
	t.Helper()
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%s: %d and %d files", what, len(a), len(b))
	}
	for k, v := range a {
		if b[k] != v {
			t.Errorf("%s: %s differs: %s, %s", what, k, v, b[k])
		}
	}
}

// TestSameBytes checks that the files do not depend on the number of workers,
// on other files or on the compression of the input.
func TestSameBytes(t *testing.T) {
	trace := filepath.Join(demo, "serving/rank0.pt.trace.json.gz")
	small := Options{RowGroup: 300, ChunkSize: 50_000, Run: "r"}
	lake := func(name string, o Options, inputs ...string) string {
		o.Output = filepath.Join(t.TempDir(), name)
		mustRun(t, o, inputs...)
		return o.Output
	}
	one, many := small, small
	one.Workers, many.Workers = 1, 5
	a := lake("one", one, trace)
	same(t, "-j 1 and -j 5", parts(t, a), parts(t, lake("many", many, trace)))
	little := small // rows go through a file, and so do encoded columns
	little.MaxMemory, little.RowGroup = 1, 20
	roomy := little
	roomy.MaxMemory = 0
	same(t, "little memory", parts(t, lake("little", little, trace)), parts(t, lake("roomy", roomy, trace)))
	same(t, "repeated", parts(t, a), parts(t, lake("again", many, trace)))

	z, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(z))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "rank0.pt.trace.json")
	if err := os.WriteFile(plain, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	same(t, "plain and gzip", parts(t, a, "traces"), parts(t, lake("plain", many, plain), "traces"))
}

// TestResume checks that a second run does nothing, that --force does it all
// again with the same result, and that content, not the name, tells twins.
func TestResume(t *testing.T) {
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}
	_, first := mustRun(t, o, demo)
	before := parts(t, o.Output)
	_, second := mustRun(t, o, demo)
	if second.Skipped != first.Inputs || second.Done != 0 {
		t.Fatalf("second run: %+v", second)
	}
	o.Force = true
	_, forced := mustRun(t, o, demo)
	if forced.Done != first.Done {
		t.Fatalf("forced run: %+v", forced)
	}
	same(t, "forced", before, parts(t, o.Output))

	o.Force = false
	copied := filepath.Join(t.TempDir(), "copy.json.gz")
	b, err := os.ReadFile(filepath.Join(demo, "serving/rank1.pt.trace.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	reports, sum := mustRun(t, o, copied)
	if r := reports["copy.json.gz"]; sum.Duplicates != 1 || !strings.Contains(r.Skipped, "same content") || r.Outcome != "ok" {
		t.Fatalf("twin: %+v", r)
	}
	withTwin := parts(t, o.Output)
	if _, sum := mustRun(t, o, copied); sum.Skipped != 1 {
		t.Fatalf("twin again: %+v", sum)
	}
	o.Force = true
	if _, sum := mustRun(t, o, copied); sum.Duplicates != 1 {
		t.Fatalf("forced twin: %+v", sum)
	}
	same(t, "forced twin", withTwin, parts(t, o.Output))
}

// TestBatchGoesOn checks that bad inputs have outcomes and stop nothing.
func TestBatchGoesOn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("empty.json", "")
	write("page.json", "<!DOCTYPE html><html></html>")
	write("lfs.json.gz", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
	write("other.json", `{"a": 1}`)
	write("cut.json", `{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}, {"ph": "X", "na`)
	write("good.json", `{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}`)
	write("notes.txt", "not a trace")
	if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	o := Options{Output: filepath.Join(t.TempDir(), "lake")}
	reports, sum := mustRun(t, o, dir)
	for name, want := range map[string]string{
		"empty.json": "rejected", "page.json": "rejected", "lfs.json.gz": "rejected", "other.json": "rejected",
		"cut.json": "partial", "good.json": "ok",
	} {
		if r := reports[name]; r.Outcome != want || want != "ok" && r.Reason == "" {
			t.Errorf("%s: %s (%s), want %s", name, r.Outcome, r.Reason, want)
		}
	}
	if !sum.Bad() || sum.Inputs != 6 || sum.Ignored != 2 {
		t.Errorf("summary %+v", sum)
	}
	o = Options{Output: filepath.Join(t.TempDir(), "lake"), Strict: true}
	reports, _ = mustRun(t, o, dir)
	if r := reports["cut.json"]; r.Outcome != "rejected" || !strings.Contains(r.Reason, "strict") {
		t.Errorf("strict: %+v", r)
	}
}

// TestForcedTwins: each of several inputs of equal content that are imported at once
// has its row, also with --force.
func TestForcedTwins(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(demo, "cpu/hf_eval_plain.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	in := t.TempDir()
	for i := range 4 {
		if err := os.WriteFile(filepath.Join(in, fmt.Sprint(i, ".json.gz")), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		out := filepath.Join(t.TempDir(), "lake")
		for range 2 {
			if _, sum := mustRun(t, Options{Output: out, Workers: 4, Force: true}, in); sum.Done != 4 || sum.Duplicates != 3 {
				t.Fatalf("%+v", sum)
			}
		}
		expect(t, out, "SELECT count(*), count(duplicate_of), count(DISTINCT path) FROM traces", "4 3 4")
	}
}

// TestTwinOfOwnForm: a copy says what is wrong with its own stored form, and nothing
// of its content a second time.
func TestTwinOfOwnForm(t *testing.T) {
	text := []byte(`{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"pid":0,"tid":7}]}`)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	damaged := gz.Bytes()
	damaged[len(damaged)-8] ^= 1 // the checksum
	in, out := t.TempDir(), filepath.Join(t.TempDir(), "lake")
	for name, b := range map[string][]byte{"a.json": text, "b.json.gz": damaged, "c.json": append([]byte("\xef\xbb\xbf"), text...)} {
		if err := os.WriteFile(filepath.Join(in, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		mustRun(t, Options{Output: out}, filepath.Join(in, name))
	}
	_, sum := mustRun(t, Options{Output: out, Force: true}, in)
	if sum.Duplicates != 2 {
		t.Errorf("%+v", sum)
	}
	expect(t, out, `SELECT parse_filename(path) AS f, string_agg(code, ' ' ORDER BY code) FROM diagnostics JOIN traces USING (trace_id)
		WHERE code IN ('same_content', 'gzip_checksum', 'byte_order_mark') GROUP BY f ORDER BY f`,
		"b.json.gz gzip_checksum same_content\nc.json byte_order_mark same_content")
}

// TestEqualFailures: inputs that hold the same bytes, or none, fail each for
// itself, and no row of one takes the place of those of another.
func TestEqualFailures(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"a": "", "b": "", "c": `{"no":"trace"}`, "d": `{"no":"trace"}`} {
		if err := os.WriteFile(filepath.Join(in, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, sum := mustRun(t, Options{Output: out, Writer: "test", Force: true}, in); sum.Rejected != 4 {
			t.Fatalf("%+v", sum)
		}
		for table, other := range map[string]string{"traces": "diagnostics", "diagnostics": "traces"} {
			if got := parts(t, out, other); len(got) != 4 {
				t.Errorf("%d parts of %s: %v", len(got), table, got)
			}
		}
	}
	l, err := lake.Create(out, "test")
	if err != nil {
		t.Fatal(err)
	}
	if merged, err := l.Compact(t.Context(), lake.CompactOptions{TargetBytes: 1 << 20}); err != nil || merged.Merged != 8 {
		t.Errorf("%+v, %v", merged, err)
	}
}

// TestReplacedFile: a file counts once, with what it holds now, whatever it was
// when it was first imported, and nothing is lost that only the dataset has.
func TestReplacedFile(t *testing.T) {
	full, err := os.ReadFile(filepath.Join(demo, "serving/rank0.pt.trace.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	another, err := os.ReadFile(filepath.Join(demo, "cpu/hf_eval_plain.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	const rows = "SELECT count(*), count(*) FILTER (outcome = 'ok'), count(duplicate_of), (SELECT count(DISTINCT trace_id) FROM cpu_events) FROM traces"
	for _, how := range []string{"directory", "directory, members", "bucket"} {
		t.Run(how, func(t *testing.T) {
			o := Options{Output: filepath.Join(t.TempDir(), "lake"), Member: strings.Contains(how, "members")}
			if how == "bucket" {
				o.Output = storetest.Start(t).URL("lake")
			}
			dir := filepath.Join(t.TempDir(), "in")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			holds := func(name string, data []byte) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			importsOf := func(o Options, in string, replaced int, want string) (notices []string) {
				t.Helper()
				_, sum := mustRun(t, o, in)
				if o.Member {
					o.Member, o.Writer = false, "tracelake test"
					_, sum = list(t, o, in)
				}
				if sum.Replaced != replaced {
					t.Errorf("%d replaced, want %d", sum.Replaced, replaced)
				}
				expect(t, o.Output, rows, want)
				return sum.Notices
			}
			imports := func(o Options, replaced int, want string) { t.Helper(); importsOf(o, dir, replaced, want) }
			holds("t.json.gz", []byte("\x1f\x8b cut"))
			imports(o, 0, "1 0 0 0")
			holds("t.json.gz", full[:300])
			imports(o, 1, "1 0 0 0")
			holds("t.json.gz", full)
			imports(o, 1, "1 1 0 1")
			holds("t.json.gz", nil) // which says nothing
			imports(o, 0, "2 1 0 1")
			holds("t.json.gz", full)
			imports(o, 1, "1 1 0 1")
			holds("copy.json.gz", full)
			imports(o, 0, "2 2 1 1")
			holds("t.json.gz", another)
			if notices := importsOf(o, filepath.Join(dir, "t.json.gz"), 0, "3 3 1 2"); len(notices) == 0 || !strings.Contains(notices[0], "stays") {
				t.Errorf("notices %v", notices)
			}
			holds("t.json.gz", full)
			imports(o, 1, "2 2 1 1")
			holds("t.json.gz", another) // with its copy at hand
			if o.Member {               // a list cannot import the copy again
				imports(o, 0, "3 3 1 2")
			} else {
				imports(o, 1, "2 2 0 2")
			}
			holds("copy.json.gz", another)
			if o.Member {
				imports(o, 2, "2 2 1 1")
			} else {
				imports(o, 1, "2 2 1 1")
			}
			holds("t.json.gz", full)
			o.Run = "after"
			imports(o, 0, "3 3 1 2")
		})
	}
}

// TestDamagedCommit: a damaged commit is named, stops no import, and the import of
// its own input heals it.
func TestDamagedCommit(t *testing.T) {
	out := filepath.Join(t.TempDir(), "lake")
	for _, member := range []bool{false, true} {
		o := Options{Output: out, Run: "r", Member: member}
		reports, _ := mustRun(t, o, filepath.Join(demo, "serving"))
		id := reports["rank0.pt.trace.json.gz"].TraceID
		if err := os.Truncate(filepath.Join(out, "_tracelake/commits", id+".json"), 200); err != nil {
			t.Fatal(err)
		}
		_, sum := mustRun(t, o, filepath.Join(demo, "cpu/hf_eval_plain.json.gz"))
		if sum.Failed != 0 || !member && (len(sum.Notices) != 1 || !strings.Contains(sum.Notices[0], id)) {
			t.Errorf("another input: %+v", sum)
		}
		o.Force = member
		if _, sum := mustRun(t, o, filepath.Join(demo, "serving/rank0.pt.trace.json.gz")); sum.OK != 1 || sum.Duplicates != 0 {
			t.Errorf("its own input: %+v", sum)
		}
	}
	want := filepath.Join(t.TempDir(), "lake")
	mustRun(t, Options{Output: want, Run: "r"}, filepath.Join(demo, "serving"), filepath.Join(demo, "cpu/hf_eval_plain.json.gz"))
	same(t, "healed", parts(t, want), parts(t, out))
}

// TestInterrupted checks that a stopped run leaves nothing that counts as data
// and that the next one completes it.
func TestInterrupted(t *testing.T) {
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r", Writer: "tracelake test"}
	found, err := Discover([]string{demo})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancelled := o
	cancelled.Workers = 1
	if _, err := Run(ctx, found, cancelled, func(Report) { cancel() }); err == nil {
		t.Fatal("an interrupted run succeeded")
	}
	if len(parts(t, o.Output)) == 0 {
		t.Fatal("the first input was not committed")
	}
	mustRun(t, o, demo)
	whole := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}
	mustRun(t, whole, demo)
	same(t, "interrupted and whole", parts(t, whole.Output), parts(t, o.Output))
}

// TestChangedBetweenReadings checks that a file that is another one when it is read
// for the second time, as Arrow files need, fails alone.
func TestChangedBetweenReadings(t *testing.T) {
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Format: columnar.Arrow, Writer: "tracelake test"}
	i, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	reading := 0
	from := &kinetoReader{open: func(context.Context) (io.ReadCloser, error) {
		reading++
		return io.NopCloser(strings.NewReader(fmt.Sprintf(`{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "%d", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}`, reading))), nil
	}}
	err = i.c.attempt(t.Context(), Input{Path: "t.json"}, from, lake.Source{Path: "/t.json"}, &Report{Run: "r"})
	var unread *unreadError
	if !errors.As(err, &unread) || !strings.Contains(err.Error(), "t.json: changed") || reading != 2 {
		t.Errorf("%d readings: %v", reading, err)
	}
	if _, there, err := i.c.lake.AnyCommit(); there || err != nil {
		t.Errorf("imported all the same: %v", err)
	}
}
