//go:build cgo && !noduckdb

package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/schema"
	"tracelake/schema/columnar"
	"tracelake/schema/lake"
)

// row is a row of a test table: values by column, int64, float64, bool or
// string. Columns that it does not name are null, or a zero where the table
// wants a value.
type row map[string]any

// vectors turns rows into columns.
func vectors(t testing.TB, table *schema.Table, rows []row) []schema.Vector {
	t.Helper()
	out := make([]schema.Vector, len(table.Columns))
	for i, c := range table.Columns {
		if i == 0 {
			continue // trace_id: the file's
		}
		v := &out[i]
		for r, row := range rows {
			x, ok := row[c.Name]
			if !ok && c.Nullable {
				continue
			}
			v.Rows = append(v.Rows, int32(r))
			switch {
			case c.Type == schema.String:
				text, _ := x.(string)
				v.Dict = append(v.Dict, text)
				v.Vals = append(v.Vals, int64(len(v.Dict)-1))
			case ok:
				v.Vals = append(v.Vals, x.(int64))
			default:
				v.Vals = append(v.Vals, 0)
			}
		}
		if len(v.Rows) == len(rows) {
			v.Rows = nil
		}
	}
	return out
}

// add commits a trace with the given tables.
func add(t testing.TB, l *lake.Lake, content string, rank *int64, tables map[string][]row) string {
	t.Helper()
	sha := fmt.Sprintf("%064x", len(content)*7919+int(content[0]))
	id, err := lake.TraceID(fmt.Sprintf("%016x", len(content)*7919+int(content[0])) + sha[16:])
	if err != nil {
		t.Fatal(err)
	}
	txn, err := l.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer txn.Abort()
	for name, rows := range tables {
		table := schema.TableByName(name)
		f, err := txn.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w, err := columnar.CreateParquet(f, table, columnar.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(len(rows), vectors(t, table, rows)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(id); err != nil {
			t.Fatal(err)
		}
	}
	_, err = txn.Commit(lake.Record{
		TraceID: id, ContentDigest: sha, Run: "job", Rank: rank, Outcome: lake.OutcomeOK,
		Source: lake.Source{Path: "/" + content},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func kernel(index int64, name string, start, dur int64, more row) row {
	r := row{
		"event_index": index, "kind": "gpu_kernel", "name": name, "start_ns": start, "dur_ns": dur,
		"end_ns": start + dur, "device": int64(0), "link_status": "linked",
	}
	for k, v := range more {
		r[k] = v
	}
	return r
}

// sample makes a lake of two traces, one of them without a rank and without
// GPU work.
func sample(t testing.TB) (root, id string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "it's a lake")
	l, err := lake.Create(root, "test")
	if err != nil {
		t.Fatal(err)
	}
	id = add(t, l, "gpu", new(int64(3)), map[string][]row{
		"traces": {{"outcome": "ok", "run": "job", "rank": int64(3), "path": "/gpu"}},
		"gpu_events": {
			kernel(1, "gemm", 100, 60, nil),
			kernel(2, "gemm", 200, 20, row{"unresolved_reason": "launch_outside_iteration_range"}),
			kernel(3, "copy \x1b[31mred", 230, 20, row{"link_status": "unlinked", "unresolved_reason": "no_launch_record"}),
			kernel(4, "gemm", 0, 1<<60, row{"time_flag": "zero_time"}),
		},
		"devices": {{
			"ordinal": int64(0), "gpu_events": int64(4), "excluded_events": int64(1), "busy_ns": int64(100),
			"summed_ns": int64(100), "first_ns": int64(100), "last_ns": int64(250),
		}},
	})
	add(t, l, "cpu trace", nil, map[string][]row{"traces": {{"outcome": "ok", "run": "job", "path": "/cpu"}}})
	return root, id
}

func open(t testing.TB, root string) *DB {
	t.Helper()
	db, err := Open(t.Context(), root, Options{Memory: "256MiB", Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// ask returns the result of a query in CSV.
func ask(t testing.TB, db *DB, sql string) string {
	t.Helper()
	r, err := db.Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var out bytes.Buffer
	if err := Print(&out, CSV, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAnalyses(t *testing.T) {
	root, id := sample(t)
	db := open(t, root)
	for name, want := range map[string]string{
		"kernels": "name,class,events,total_ns,total_ms,mean_us,min_us,p50_us,p95_us,max_us,stddev_us,share_pct\n" +
			"gemm,compute,2,80,0,0.04,0.02,0.04,0.058,0.06,0.028,80\n" +
			"copy \x1b[31mred,compute,1,20,0,0.02,0.02,0.02,0.02,0.02,,20\n",
		"devices": "run,rank,trace_id,process,device,gpu,gpu_events,excluded,window_ns,busy_ns,idle_ns,busy_pct," +
			"compute_ns,communication_ns,memory_ns,exposed_communication_ns,exposed_memory_ns,overlap\n" +
			"job,3," + id + ",,0,,3,1,150,100,50,66.67,100,0,0,0,0,1\n",
		"unlinked": "run,rank,trace_id,kind,link_status,unresolved_reason,gpu_events,total_ms,share_pct\n" +
			"job,3," + id + ",gpu_kernel,linked,launch_outside_iteration_range,1,0,20\n" +
			"job,3," + id + ",gpu_kernel,unlinked,no_launch_record,1,0,20\n",
	} {
		a, ok := Lookup(name)
		if !ok {
			t.Fatalf("no analysis %s", name)
		}
		if got := ask(t, db, a.SQL); got != want {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
	}
}

// TestCatalogue runs every analysis over a dataset without any table, and
// compares the columns with the header of the file.
func TestCatalogue(t *testing.T) {
	l, err := lake.Create(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, l.Root())
	for _, a := range Analyses() {
		r, err := db.Query(t.Context(), a.SQL)
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
			continue
		}
		var want, got []string
		for _, c := range a.Columns {
			want = append(want, c.Name)
			if c.Doc == "" {
				t.Errorf("%s: column %s has no text", a.Name, c.Name)
			}
		}
		for _, c := range r.Columns() {
			got = append(got, c.Name)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: columns %v, documented %v", a.Name, got, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestViews(t *testing.T) {
	root, id := sample(t)
	// What a killed writer left is not data.
	stray := filepath.Join(root, "gpu_events", "run=job", "rank=3", "part-000000000000.parquet")
	if err := os.WriteFile(stray, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	db := open(t, root)
	for sql, want := range map[string]string{
		"SELECT count(*) AS n FROM gpu_events":                             "n\n4\n",
		"SELECT run, rank, trace_id FROM gpu_events WHERE event_index = 1": "run,rank,trace_id\njob,3," + id + "\n",
		"SELECT path, rank FROM traces ORDER BY path":                      "path,rank\n/cpu,\n/gpu,3\n",
		"SELECT count(*) AS n, any_value(rank) AS r FROM counters":         "n,r\n0,\n",
		"SET VARIABLE x = 41; SELECT getvariable('x') + 1 AS x; -- done":   "x\n42\n",
		"CREATE TEMP TABLE t AS SELECT 1 AS a; PIVOT t ON a USING sum(a)":  "1\n1\n",
		"SELECT ';' AS \"a;b\", $$;$$ AS c":                                "a;b,c\n;,;\n",
	} {
		if got := ask(t, db, sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}

func TestLockdown(t *testing.T) {
	root, _ := sample(t)
	db := open(t, root)
	target := filepath.Join(root, "traces", "new.parquet")
	outside := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(outside, []byte("a\n1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"COPY (SELECT 1) TO " + quote(target),
		"EXPLAIN ANALYZE COPY (SELECT 1) TO " + quote(target),
		"SELECT 1; COPY (SELECT 1) TO " + quote(outside) + "; SELECT 2",
		"PREPARE p AS COPY (SELECT 1) TO " + quote(target),
		"EXPORT DATABASE " + quote(root+"/traces/e"),
		"ATTACH " + quote(target),
		"INSTALL httpfs",
		"LOAD httpfs",
		"SELECT * FROM read_csv(" + quote(outside) + ")",
		"SELECT * FROM read_text(" + quote(outside) + ")",
		"SELECT * FROM " + quote(outside),
		"SELECT * FROM glob('/*')",
		"SELECT * FROM 'http://127.0.0.1:9/x.parquet'",
		"SET enable_external_access = true",
		"SET allowed_paths = ['/']",
		"PRAGMA profile_output=" + quote(target),
		"CREATE SECRET s (TYPE s3)",
	} {
		r, err := db.Query(t.Context(), sql)
		if err == nil {
			err = Print(io.Discard, JSON, r)
		}
		if err == nil {
			t.Errorf("%s works", sql)
		}
	}
	for _, path := range []string{target, root + "/traces/e"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	// After all that the connection still answers.
	if got := ask(t, db, "SELECT count(*) AS n FROM traces"); got != "n\n2\n" {
		t.Errorf("answer %q", got)
	}
}

func TestErrors(t *testing.T) {
	if _, err := Open(t.Context(), t.TempDir(), Options{}); !errors.Is(err, lake.ErrNotLake) {
		t.Errorf("an empty directory: %v", err)
	}
	root, _ := sample(t)
	if _, err := Open(t.Context(), root, Options{Memory: "lots"}); err == nil {
		t.Error("a limit that is no size is taken")
	}
	db := open(t, root)
	if _, err := db.Query(t.Context(), " -- nothing\n;"); !errors.Is(err, ErrEmpty) {
		t.Errorf("an empty script: %v", err)
	}
	if _, err := db.Query(t.Context(), "SELECT nonsense FROM traces"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a wrong column: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Query(ctx, "SELECT count(*) FROM range(1000000000000)"); err == nil {
		t.Error("a cancelled query works")
	}
}

// TestSpill: a query that would take more of the disk than it may fails and
// says so, and what it wrote is gone.
func TestSpill(t *testing.T) {
	dir := t.TempDir()
	root, _ := sample(t)
	db, err := Open(t.Context(), root, Options{TempDir: dir, Memory: "60MB", Spill: "2MB", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(t.Context(), "SELECT * FROM range(20000000) AS r(x) ORDER BY hash(x)")
	for err == nil {
		if err = rows.Next(make([]any, 1)); errors.Is(err, io.EOF) {
			t.Fatal("no error")
		}
	}
	if !strings.Contains(err.Error(), "max_temp_directory_size") {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
}

// lookup returns the SQL of an analysis.
func lookup(t testing.TB, name string) string {
	t.Helper()
	a, ok := Lookup(name)
	if !ok {
		t.Fatalf("no analysis %s", name)
	}
	return a.SQL
}

// one makes a lake of one trace, which starts at 0.
func one(t testing.TB, tables map[string][]row) (db *DB, id string) {
	t.Helper()
	l, err := lake.Create(filepath.Join(t.TempDir(), "lake"), "test")
	if err != nil {
		t.Fatal(err)
	}
	if tables["traces"] == nil {
		tables["traces"] = []row{{"outcome": "ok", "run": "job", "path": "/one", "gpu_events": int64(len(tables["gpu_events"])), "start_ns": int64(0), "end_ns": int64(1_000_000)}}
	}
	id = add(t, l, "one", nil, tables)
	return open(t, l.Root()), id
}

func call(index int64, api string, start, dur int64, more row) row {
	r := row{"event_index": index, "api": api, "start_ns": start, "dur_ns": dur, "end_ns": start + dur, "pid": int64(1), "tid": int64(1)}
	maps.Copy(r, more)
	return r
}

// TestProcesses: two processes of a trace have a GPU 0 each.
func TestProcesses(t *testing.T) {
	work := map[string][]row{}
	for p := range int64(2) {
		i, process := 10*p, row{"global_pid": p + 100, "stream": int64(7)}
		linked := row{"launch_id": i + 1, "graph_id": int64(3)}
		maps.Copy(linked, process)
		work["launches"] = append(work["launches"], call(i+1, "cudaGraphLaunch", 0, 10, nil))
		work["gpu_events"] = append(work["gpu_events"],
			kernel(i+2, "gemm", 100, 20, linked), kernel(i+3, "gemm", 130+10*p, 20, linked),
			kernel(i+4, "Memset (Device)", 300, 5, process))
		work["gpu_events"][3*p+2]["kind"] = "gpu_memset"
	}
	db, id := one(t, work)
	for name, want := range map[string]string{
		"graphs": "run,rank,trace_id,process,device,graph_id,launch_api,replays,events,wall_us,busy_us,gaps_us,min_wall_us,max_wall_us,launch_us\n" +
			"job,," + id + ",101,0,3,cudaGraphLaunch,1,2,0.06,0.04,0.02,0.06,0.06,0.01\n" +
			"job,," + id + ",100,0,3,cudaGraphLaunch,1,2,0.05,0.04,0.01,0.05,0.05,0.01\n",
		"copies": "run,rank,trace_id,process,device,kind,copy_kind,from,to,events,bytes,total_us,mean_us,max_us,gb_per_s\n" +
			"job,," + id + ",100,0,gpu_memset,,,,1,,0.005,0.005,0.005,\n" +
			"job,," + id + ",101,0,gpu_memset,,,,1,,0.005,0.005,0.005,\n",
	} {
		if got := ask(t, db, lookup(t, name)); got != want {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
	}
	got := ask(t, db, "SET VARIABLE group_by = 'device'; SELECT name, events FROM ("+strings.TrimRight(lookup(t, "kernels"), ";\n")+"\n)")
	if want := "name,events\nprocess 100 device 0,2\nprocess 101 device 0,2\n"; got != want {
		t.Errorf("kernels by device:\n%swant\n%s", got, want)
	}
}

// TestGraphGaps: replays are told by their launches, with or without numbers of
// graphs. Replays whose launch is lost are not taken for one.
func TestGraphGaps(t *testing.T) {
	replay := func(index, at int64, more row) []row {
		return []row{kernel(index, "gemm", at, 10, more), kernel(index+1, "gemm", at+20, 10, more)}
	}
	for _, c := range []struct {
		name, api string
		more,     // of the GPU work, where a launch is recorded
		lost row
		want string
	}{
		{"numbered", "cudaGraphLaunch", row{"graph_id": int64(3)}, nil, "graph,2\nhost,1\n"},
		{"not numbered", "hipGraphLaunch", nil, nil, "graph,2\nhost,1\n"},
		{"versioned", "cudaGraphLaunch_v10000", nil, nil, "graph,2\nhost,1\n"},
		{"no graph", "cudaLaunchKernel", nil, nil, "host,1\nother,2\n"},
		{"lost", "", nil, row{"graph_id": int64(3)}, "unknown,3\n"},
	} {
		tables := map[string][]row{}
		for i, at := range []int64{100, 1000} {
			more := row{"stream": int64(7)}
			maps.Copy(more, c.lost)
			if c.lost == nil {
				tables["launches"] = append(tables["launches"], call(int64(i), c.api, at-50, 10, nil))
				more["launch_id"] = int64(i)
				maps.Copy(more, c.more)
			}
			tables["gpu_events"] = append(tables["gpu_events"], replay(int64(10+10*i), at, more)...)
		}
		db, _ := one(t, tables)
		sql := "SET VARIABLE kernel_gap_ns = 5; SELECT reason, gaps FROM (" + strings.TrimRight(lookup(t, "idle"), ";\n") + "\n) WHERE stream IS NULL ORDER BY ALL"
		if got := ask(t, db, sql); got != "reason,gaps\n"+c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
}

// TestParameters: a value that an analysis does not know is refused.
func TestParameters(t *testing.T) {
	root, _ := many(t)
	db := open(t, root)
	for _, c := range []struct{ name, set, want string }{
		{"ops", "group_by = 'shape'", ""},
		{"ops", "group_by = 'module'", ""},
		{"ops", "group_by = 'name'", ""},
		{"ops", "group_by = 'bogus'", "group_by: bogus is none of name, shape, module"},
		{"kernels", "group_by = 'bogus'", "group_by: bogus is none of"},
		{"kernels", "kinds = 'all'", ""},
		{"kernels", "kinds = 'kernels'", ""},
		{"kernels", "kinds = 'foo'", "kinds: foo is none of kernels, all"},
	} {
		variable, _, _ := strings.Cut(c.set, " ")
		r, err := db.Query(t.Context(), "SET VARIABLE "+c.set+";"+lookup(t, c.name))
		if err == nil {
			err = Print(io.Discard, CSV, r)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %s: %v, want %q", c.name, c.set, err, c.want)
		}
		ask(t, db, "RESET VARIABLE "+variable+"; SELECT 1 AS x")
	}
}

// TestTopKernel: of kernels with the same time summary names the one that
// kernels names first.
func TestTopKernel(t *testing.T) {
	var work []row
	for i := range int64(40) {
		work = append(work, kernel(i, fmt.Sprintf("kernel %02d", (i*7+3)%40), 1000*i, 10, nil))
	}
	db, _ := one(t, map[string][]row{"gpu_events": work})
	for range 10 {
		if got := ask(t, db, "SELECT top_kernel FROM ("+strings.TrimRight(lookup(t, "summary"), ";\n")+"\n)"); got != "top_kernel\nkernel 00\n" {
			t.Fatal(got)
		}
	}
}

// TestWindow: calls and operators in the window have all of their GPU work, and
// the GPU time of the others is not theirs.
func TestWindow(t *testing.T) {
	const us = 1000
	work := func(index, launch, at, dur int64) row {
		r := kernel(index, "gemm", at*us, dur*us, row{"stream": int64(7)})
		if launch > 0 {
			r["launch_id"] = launch
		}
		return r
	}
	host := func(r row, at, dur int64) row {
		maps.Copy(r, row{"pid": int64(1), "tid": int64(1), "start_ns": at * us, "dur_ns": dur * us, "end_ns": (at + dur) * us})
		return r
	}
	db, _ := one(t, map[string][]row{
		"cpu_events": {
			host(row{"event_index": int64(1), "category": "cpu_op", "name": "aten::mm", "input_dims": "[[8, 8], [8, 8]]", "input_types": `["float", "float"]`}, 100, 500),
			host(row{"event_index": int64(2), "category": "cpu_op", "name": "aten::mm", "input_dims": "[[8, 8], [8, 8]]", "input_types": `["float", "float"]`}, 700, 100),
			host(row{"event_index": int64(3), "category": "python_function", "name": "f.py(1): f"}, 90, 900),
		},
		"ranges": {
			host(row{"event_index": int64(4), "name": "step", "category": "user_annotation"}, 80, 300),
			host(row{"event_index": int64(5), "name": "step", "category": "user_annotation"}, 650, 300),
		},
		"launches": {
			call(10, "cudaLaunchKernel", 150*us, 5*us, nil), call(11, "cudaLaunchKernel", 550*us, 5*us, nil), call(12, "cudaLaunchKernel", 750*us, 5*us, nil),
		},
		"gpu_events": {work(20, 10, 5000, 30), work(21, 11, 5040, 20), work(22, 12, 5100, 10), work(23, 0, 300, 7)},
	})
	ask(t, db, "SET VARIABLE to_ns = 500000; SELECT 1 AS x")
	for _, c := range []struct{ name, columns, want string }{
		{"launches", "calls, launching, gpu_events, mean_delay_us, shorter_than_call", "1,1,1,4850,0\n"},
		{"queue", "launches, max, mean", "1,1,1\n"},
		{"ops", "name, calls, cpu_total_ms, gpu_total_ms, gpu_events, gpu_share_pct", "aten::mm,1,0.5,0.05,2,100\n"},
		{"python", "calls, gpu_total_ms", "1,0.06\n"},
		{"ranges", "name, ranges, projected, gpu_ms, gpu_events", "step,1,1,0.03,1\n"},
		{"roofline", "op, count, gpu_ms, share_pct", "aten::mm,1,0.05,87.72\neverything else,,0.007,12.28\n"},
		{"kernels", "events, total_ms", "1,0.007\n"},
	} {
		got := ask(t, db, "SELECT "+c.columns+" FROM ("+strings.TrimRight(lookup(t, c.name), ";\n")+"\n)")
		if want := strings.ReplaceAll(c.columns, " ", "") + "\n" + c.want; got != want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, want)
		}
	}
	if got := ask(t, db, "SELECT count(*) AS n, sum(gpu_ns) AS ns FROM launched"); got != "n,ns\n1,30000\n" {
		t.Errorf("launched: %s", got)
	}
}
