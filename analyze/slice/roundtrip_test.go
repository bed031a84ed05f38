//go:build cgo && !noduckdb

package slice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tracelake/analyze/query"
	"tracelake/convert"
	"tracelake/schema"
)

// sharedTraces returns the directory of the collected real traces, "" where
// they are not there.
func sharedTraces(t testing.TB) string {
	t.Helper()
	shared := os.Getenv("TRACELAKE_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	dir := filepath.Join(shared, "traces")
	if _, err := os.Stat(dir); err != nil {
		t.Logf("NOT READ: the collected traces are not here: %v; TRACELAKE_SHARED may name them", err)
		return ""
	}
	return dir
}

func open(t testing.TB, dir string) *query.DB {
	t.Helper()
	db, err := query.Open(context.Background(), dir, query.Options{Threads: 2, Memory: "2GiB"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// rowsOf returns the rows of a query as texts.
func rowsOf(t testing.TB, db *query.DB, sql string) (out []string) {
	t.Helper()
	recs, err := (&slicer{db: db}).all(context.Background(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	for _, r := range recs {
		out = append(out, fmt.Sprint(r.v...))
	}
	return out
}

// cut writes a slice of the only trace of a dataset to a file.
func cut(t testing.TB, lake, out string, o Options) *Report {
	t.Helper()
	db := open(t, lake)
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rep, err := Write(context.Background(), db, f, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// compare returns, per table, how many rows one trace has that the other has
// not, with an example; columns of ignore do not count.
func compare(t testing.TB, db *query.DB, a, b string, ignore []string) (diffs []string) {
	t.Helper()
	for _, table := range append(slices.Clone(tables), "devices", "activities") {
		i := slices.IndexFunc(schema.Tables, func(x *schema.Table) bool { return x.Name == table })
		var cols []string
		for _, c := range schema.Tables[i].Columns {
			if c.Name != "trace_id" && !slices.Contains(ignore, c.Name) && !slices.Contains(ignore, table+"."+c.Name) {
				cols = append(cols, `"`+c.Name+`"`)
			}
		}
		list := strings.Join(cols, ", ")
		for _, d := range [][2]string{{a, b}, {b, a}} {
			found := rowsOf(t, db, fmt.Sprintf("SELECT * FROM (SELECT %s FROM %s WHERE trace_id = '%s' EXCEPT ALL SELECT %s FROM %s WHERE trace_id = '%s') LIMIT 2000",
				list, table, d[0], list, table, d[1]))
			if len(found) > 0 {
				side := "lost"
				if d[0] == b {
					side = "new"
				}
				diffs = append(diffs, fmt.Sprintf("%s: %d rows %s, such as %s", table, len(found), side, found[0]))
			}
		}
	}
	return diffs
}

// losses are the columns that a slice of a whole Kineto trace does not give
// back. Everything else is equal, row for row.
var losses = []string{
	"cpu_events.pairing", "cpu_events.end_index", // begin and end events become one event with a duration
}

// positions are columns that count events; they shift where the source holds
// events without rows, or begin and end events.
var positionColumns = []string{"event_index", "launch_id", "iteration_range"}

// kinetoTraces returns real traces: those of the repository and, where they
// are there, small ones of the shared collection.
func kinetoTraces(t testing.TB) (out []string) {
	t.Helper()
	walk := func(dir string, most int64, files int) {
		first := len(out)
		err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.Contains(e.Name(), ".json") || strings.Contains(e.Name(), "memory_timeline") || strings.Contains(e.Name(), "_et.") {
				return err
			}
			if st, err := e.Info(); err == nil && st.Size() < most && len(out) < first+files {
				out = append(out, p)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	walk("../../testdata/demo", 1<<20, 6)
	walk("../../testdata/visible", 1<<20, 20)
	if dir := sharedTraces(t); dir != "" {
		for _, d := range []string{"PyTorch-CUDA-Graph-Capture-Examples", "dtu_mlops", "HolisticTraceAnalysis", "kineto", "TraceLens"} {
			walk(filepath.Join(dir, "kineto", d), 200<<10, 3)
		}
		walk(filepath.Join(dir, "pathological"), 200<<10, 25)
	}
	return out
}

func TestWholeKinetoTrace(t *testing.T) {
	compared := 0
	for _, f := range kinetoTraces(t) {
		dir := t.TempDir()
		lake, part := filepath.Join(dir, "lake"), filepath.Join(dir, "part.json")
		r := importOne(t, lake, f)
		if r.Outcome == "rejected" || r.Failed != "" {
			continue
		}
		rep := cut(t, lake, part, Options{KeepOverlaps: true})
		if r := importOne(t, lake, part); r.Outcome != "ok" {
			t.Errorf("%s: the slice is %s: %s", f, r.Outcome, r.Reason)
			continue
		}
		db := open(t, lake)
		b := rowsOf(t, db, "SELECT trace_id FROM traces WHERE trace_id <> '"+rep.TraceID+"'")
		if len(b) != 1 {
			t.Errorf("%s: %d traces besides the source", f, len(b))
			continue
		}
		ignore := losses
		shifted := rowsOf(t, db, "SELECT 1 FROM diagnostics WHERE trace_id = '"+rep.TraceID+"' AND code IN ('broken_event', 'empty_event', 'non_object_event') UNION ALL SELECT 1 FROM cpu_events WHERE pairing = 'paired'")
		if len(shifted) > 0 {
			ignore = append(slices.Clone(losses), positionColumns...)
		}
		for _, d := range compare(t, db, rep.TraceID, b[0], ignore) {
			t.Errorf("%s: %s", f, d)
		}
		compared++
	}
	if compared < 15 {
		t.Errorf("only %d traces were compared", compared)
	}
}

// importOne imports one trace into a dataset.
func importOne(t testing.TB, lake, path string) (out convert.Report) {
	t.Helper()
	found, err := convert.Discover([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := convert.Run(context.Background(), found, convert.Options{Output: lake, Run: "r", Writer: "test"}, func(r convert.Report) { out = r }); err != nil {
		t.Fatal(err)
	}
	return out
}

// nsightColumns are what a report and its slice agree in. IDs that count within
// a process become unique; the calls, ranges and GPUs stay what they are.
var nsightColumns = map[string]string{
	"gpu_events": "name, start_ns, dur_ns, context, stream, correlation & 4294967295, grid_x, grid_y, grid_z, block_x, bytes, registers_per_thread, shared_memory_bytes, link_status, iteration_producer, iteration_id, unresolved_reason",
	"launches":   "api, start_ns, dur_ns, pid, tid, correlation & 4294967295, gpu_event_count, iteration_producer, iteration_id, unresolved_reason",
	"ranges":     "name, start_ns, dur_ns, pid, tid, iteration_producer, iteration_id",
	"cpu_events": "category, name, start_ns, dur_ns, context, stream, correlation & 4294967295",
	"instants":   "category, name, start_ns, addr, bytes, device_type",
	"counters":   "category, name, series, start_ns, value_int, value",
	"devices":    "gpu_events, busy_ns, first_ns, last_ns",
	// The call of an activity, whatever its number.
	"activities": "kind, first_name, event_count, start_ns, end_ns, busy_ns, summed_ns, stream, launch_api, iteration_id, unresolved_reason",
}

func TestWholeNsightReport(t *testing.T) {
	files := []string{"../../testdata/demo/training-nsight/report.sqlite"}
	if dir := sharedTraces(t); dir != "" {
		files = append(files, filepath.Join(dir, "nsys/synthetic/e2026.sqlite"), filepath.Join(dir, "nsys/synthetic/e2025_graph_cvd.sqlite"), filepath.Join(dir, "nsys/synthetic/e2021.sqlite"))
	}
	for _, f := range files {
		dir := t.TempDir()
		lake, part := filepath.Join(dir, "lake"), filepath.Join(dir, "part.json")
		if r := importOne(t, lake, f); r.Failed != "" || r.Outcome == "rejected" {
			t.Fatalf("%s: %s%s", f, r.Failed, r.Reason)
		}
		rep := cut(t, lake, part, Options{})
		if r := importOne(t, lake, part); r.Outcome != "ok" {
			t.Fatalf("%s: the slice is %s: %s", f, r.Outcome, r.Reason)
		}
		db := open(t, lake)
		b := rowsOf(t, db, "SELECT trace_id FROM traces WHERE trace_id <> '"+rep.TraceID+"'")[0]
		for table, cols := range nsightColumns {
			where := ""
			if table == "devices" {
				where = " AND gpu_events > 0"
			}
			list := strings.ReplaceAll(cols, "kind,", "replace(kind, 'gpu_graph', 'gpu_kernel'),")
			for _, d := range [][2]string{{rep.TraceID, b}, {b, rep.TraceID}} {
				left := rowsOf(t, db, fmt.Sprintf("SELECT %s FROM %s WHERE trace_id = '%s'%s EXCEPT ALL SELECT %s FROM %s WHERE trace_id = '%s'%s",
					list, table, d[0], where, list, table, d[1], where))
				if len(left) > 0 {
					t.Errorf("%s: %s: %d rows differ, such as %s", f, table, len(left), left[0])
				}
			}
		}
		linked := rowsOf(t, db, "SELECT count(*) FROM gpu_events WHERE launch_id IS NOT NULL AND trace_id = '"+rep.TraceID+"'")
		arrows := rowsOf(t, db, "SELECT count(DISTINCT id) FROM flows WHERE category = 'ac2g' AND trace_id = '"+b+"'")
		if linked[0] != arrows[0] {
			t.Errorf("%s: %s linked GPU events, %s arrows", f, linked[0], arrows[0])
		}
	}
}

// TestWindows compares windows with the rule, spelled out in SQL over the
// source and over the slice.
func TestWindows(t *testing.T) {
	dir := t.TempDir()
	lake := filepath.Join(dir, "lake")
	importOne(t, lake, "../../testdata/demo/serving/rank0.pt.trace.json.gz")
	db := open(t, lake)
	span := rowsOf(t, db, "SELECT end_ns - start_ns FROM traces")[0]
	var length int64
	if _, err := fmt.Sscan(span, &length); err != nil {
		t.Fatal(err)
	}
	for i, w := range [][2]int64{{0, length / 3}, {length / 3, length / 2}, {length / 2, length}, {length / 4, length/4 + 1000}, {0, length + 1}} {
		from, to := time.Duration(w[0]), time.Duration(w[1])
		part := filepath.Join(dir, fmt.Sprintf("part%d.json", i))
		rep := cut(t, lake, part, Options{From: &from, To: &to, KeepOverlaps: true})
		again := filepath.Join(dir, fmt.Sprintf("again%d", i))
		if r := importOne(t, again, part); r.Outcome != "ok" {
			t.Fatalf("window %d: %s %s", i, r.Outcome, r.Reason)
		}
		cutDB := open(t, again)
		bounds := fmt.Sprintf("start_ns < a + %d AND (end_ns > a + %d OR start_ns >= a + %d)", w[1], w[0], w[0])
		source := "(SELECT *, (SELECT start_ns FROM traces) AS a FROM %s)"
		work := "SELECT name, start_ns, dur_ns, stream, correlation, iteration_id, link_status FROM "
		want := rowsOf(t, db, work+fmt.Sprintf(source, "gpu_events")+" WHERE "+bounds+" ORDER BY ALL")
		got := rowsOf(t, cutDB, work+"gpu_events ORDER BY ALL")
		if !slices.Equal(want, got) {
			t.Errorf("window %d: %d GPU events, want %d", i, len(got), len(want))
		}
		calls := "SELECT api, start_ns, correlation FROM "
		want = rowsOf(t, db, calls+fmt.Sprintf(source, "launches")+" WHERE "+bounds+" OR event_index IN (SELECT launch_id FROM "+fmt.Sprintf(source, "gpu_events")+" WHERE "+bounds+") ORDER BY ALL")
		got = rowsOf(t, cutDB, calls+"launches ORDER BY ALL")
		if !slices.Equal(want, got) {
			t.Errorf("window %d: %d launches, want %d", i, len(got), len(want))
		}
		ops := "SELECT count(*) FROM " + fmt.Sprintf(source, "cpu_events") + " WHERE " + bounds
		want, got = rowsOf(t, db, ops), rowsOf(t, cutDB, strings.NewReplacer("(SELECT start_ns FROM traces)", fmt.Sprintf("%s + 0", rowsOf(t, db, "SELECT start_ns FROM traces")[0])).Replace(ops))
		if !slices.Equal(want, got) {
			t.Errorf("window %d: %v operators in the window, want %v", i, got, want)
		}
		// An arrow has both ends.
		if odd := rowsOf(t, cutDB, "SELECT id FROM flows GROUP BY category, id HAVING count(*) < 2"); len(odd) > 0 {
			t.Errorf("window %d: arrows with one end: %v", i, odd)
		}
		if rep.Length != to-from || rep.Offset != from {
			t.Errorf("window %d: %v from %v", i, rep.Length, rep.Offset)
		}
	}
}

func TestIteration(t *testing.T) {
	dir := t.TempDir()
	lake, part := filepath.Join(dir, "lake"), filepath.Join(dir, "part.json")
	importOne(t, lake, "../../testdata/demo/serving/rank0.pt.trace.json.gz")
	db := open(t, lake)
	id := strings.TrimSpace(rowsOf(t, db, "SELECT iteration_id FROM gpu_events WHERE iteration_id IS NOT NULL GROUP BY ALL ORDER BY count(*) DESC, 1 LIMIT 1")[0])
	cut(t, lake, part, Options{Iteration: id})
	again := filepath.Join(dir, "again")
	importOne(t, again, part)
	cutDB := open(t, again)
	sql := "SELECT name, start_ns, dur_ns, correlation FROM gpu_events WHERE iteration_id = '" + id + "' ORDER BY ALL"
	want, got := rowsOf(t, db, sql), rowsOf(t, cutDB, sql)
	if len(want) == 0 || !slices.Equal(want, got) {
		t.Errorf("iteration %s: %d GPU events, want %d", id, len(got), len(want))
	}
	var selection *SelectionError
	if _, err := Write(context.Background(), db, io.Discard, Options{Iteration: "none such"}); !errors.As(err, &selection) || !strings.Contains(err.Error(), "there are") {
		t.Error(err)
	}
}

// TestOverlaps checks that events on one thread of the output nest, and that
// nothing is lost for it.
func TestOverlaps(t *testing.T) {
	dir := t.TempDir()
	source, part := filepath.Join(dir, "a.json"), filepath.Join(dir, "part.json")
	var events []string
	add := func(tid string, start, dur int) {
		events = append(events, fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":%s,"ts":%d,"dur":%d,"args":{"device":0,"stream":7}}`, len(events), tid, start, dur))
	}
	for _, e := range [][2]int{{10, 10}, {12, 4}, {15, 10}, {18, 4}, {30, 5}, {30, 5}, {31, 9}} {
		add("7", e[0], e[1])
		add(`"stream 7"`, e[0], e[1])
	}
	if err := os.WriteFile(source, []byte(`{"traceEvents":[`+strings.Join(events, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	importOne(t, filepath.Join(dir, "lake"), source)
	rep := cut(t, filepath.Join(dir, "lake"), part, Options{})
	if rep.Moved != 6 {
		t.Errorf("%d events were moved, want 3 per thread", rep.Moved)
	}
	importOne(t, filepath.Join(dir, "again"), part)
	db := open(t, filepath.Join(dir, "again"))
	if n := rowsOf(t, db, "SELECT count(*), count(DISTINCT name), min(stream), max(stream) FROM gpu_events")[0]; n != "14 14 7 7" {
		t.Error(n)
	}
	crossing := rowsOf(t, db, `SELECT a.name, b.name FROM gpu_events AS a JOIN gpu_events AS b
ON coalesce(a.tid::VARCHAR, a.tid_text) = coalesce(b.tid::VARCHAR, b.tid_text) AND a.start_ns < b.start_ns AND b.start_ns < a.end_ns AND a.end_ns < b.end_ns`)
	if len(crossing) > 0 {
		t.Errorf("events cross: %v", crossing)
	}
	if names := rowsOf(t, db, "SELECT value FROM metadata WHERE name = 'thread_name' ORDER BY ALL"); len(names) < 2 || !strings.Contains(names[0], "overlap 1") {
		t.Error(names)
	}
}

func TestMicros(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0.000", 1: "0.001", 999: "0.999", 1000: "1.000", -1: "-0.001", -1500: "-1.500",
		1790000000123456789: "1790000000123456.789", math.MaxInt64: "9223372036854775.807", math.MinInt64: "-9223372036854775.808",
	} {
		if got := string(micros(nil, ns)); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
	}
}
