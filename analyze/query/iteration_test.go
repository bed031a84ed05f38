//go:build cgo && !noduckdb

package query

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/convert"
)

// converted makes a dataset of files below testdata.
func converted(t testing.TB, run string, inputs ...string) (root string) {
	t.Helper()
	for i, path := range inputs {
		inputs[i] = filepath.Join("../../testdata", path)
	}
	found, err := convert.Discover(inputs)
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(t.TempDir(), "lake")
	if _, err := convert.Run(t.Context(), found, convert.Options{Output: root, Writer: "test", Run: run}, nil); err != nil {
		t.Fatal(err)
	}
	return root
}

// lines are the rows of an answer without their heading.
func lines(answer string) []string {
	rows := strings.Split(strings.TrimSuffix(answer, "\n"), "\n")
	return rows[1:]
}

// part asks an analysis for some of its columns.
func part(t testing.TB, db *DB, columns, name string) string {
	t.Helper()
	return ask(t, db, "SELECT "+columns+" FROM ("+strings.TrimRight(lookup(t, name), ";\n")+"\n)")
}

// TestHeld: what is said of calls of host code is what was found for the calls
// that launch when they were linked.
func TestHeld(t *testing.T) {
	db := open(t, converted(t, "r", "demo", "analyses", "visible"))
	ids := lines(ask(t, db, "SELECT DISTINCT hex(iteration_id) AS id FROM ranges WHERE iteration_id IS NOT NULL"))
	if len(ids) < 40 {
		t.Fatalf("%d iterations", len(ids))
	}
	held := 0
	for _, id := range ids {
		got := ask(t, db, "SET VARIABLE iteration = decode(unhex('"+id+`'));
WITH spans AS MATERIALIZED (SELECT * FROM iteration_spans())
SELECT l.trace_id, l.event_index, held(t, p) AS held, coalesce(l.iteration_id = getvariable('iteration'), false) AS linked
FROM (SELECT l.* FROM launches AS l SEMI JOIN selected_traces AS s ON s.trace_id = l.trace_id) AS l
ASOF LEFT JOIN spans AS t ON t.lane = part_number(l.trace_id, l.pid::VARCHAR, l.tid::VARCHAR) AND t.moment <= l.start_ns
ASOF LEFT JOIN spans AS p ON p.lane = part_number(l.trace_id, l.pid::VARCHAR, NULL) AND p.moment <= l.start_ns
WHERE held OR linked`)
		for _, row := range lines(got) {
			if !strings.HasSuffix(row, ",true,true") {
				t.Errorf("%s: %s", id, row)
			}
			held++
		}
	}
	if held < 500 {
		t.Errorf("%d calls", held)
	}
}

// TestIterationAsWindow: an iteration and the part of the trace that has just its
// calls have the same of them, and the same GPU work.
func TestIterationAsWindow(t *testing.T) {
	db := open(t, converted(t, "r", "demo/serving", "analyses/one.json", "analyses/ranks"))
	marks := lines(ask(t, db, `SELECT r.trace_id, r.iteration_id, r.start_ns - t.start_ns AS a, r.start_ns + r.dur_ns - t.start_ns AS b
FROM ranges AS r JOIN selected_traces AS t ON t.trace_id = r.trace_id AND t.iteration_producer = r.iteration_producer
WHERE NOT EXISTS (FROM launches AS l WHERE l.trace_id = r.trace_id AND l.start_ns >= r.start_ns AND l.start_ns < r.start_ns + r.dur_ns AND l.iteration_id IS DISTINCT FROM r.iteration_id)
  AND NOT EXISTS (FROM ranges AS o WHERE o.trace_id = r.trace_id AND o.iteration_id = r.iteration_id AND o.event_index <> r.event_index)
  AND NOT EXISTS (FROM cpu_events AS c WHERE c.trace_id = r.trace_id AND c.start_ns >= r.start_ns AND c.start_ns < r.start_ns + r.dur_ns AND c.tid IS DISTINCT FROM r.tid)
ORDER BY ALL`))
	if len(marks) < 6 {
		t.Fatalf("%d iterations", len(marks))
	}
	rows := map[string]int{}
	for _, mark := range marks {
		m := strings.Split(mark, ",")
		for name, columns := range map[string]string{
			"launches": "*", "queue": "*", "ops": "*", "python": "*", "ranges": "*",
			// the other columns count GPU work without a launch, which no iteration has
			"roofline": "op, shapes, gpu, count, CASE WHEN count > 0 THEN gpu_ms END AS ms",
		} {
			ask(t, db, "RESET VARIABLE from_ns; RESET VARIABLE to_ns; SET VARIABLE top = 10000; SET VARIABLE trace = '"+m[0]+"'; SET VARIABLE iteration = '"+m[1]+"'; SELECT 1 AS x")
			got := part(t, db, columns, name)
			ask(t, db, "RESET VARIABLE iteration; SET VARIABLE from_ns = "+m[2]+"; SET VARIABLE to_ns = "+m[3]+"; SELECT 1 AS x")
			want := part(t, db, columns, name)
			if got != want {
				t.Errorf("%s of %s:\n%swant\n%s", name, mark, got, want)
			}
			rows[name] += len(lines(want))
		}
	}
	for name, n := range rows {
		if n < 2 {
			t.Errorf("%s: %d rows", name, n)
		}
	}
}

// TestIteration: calls and ranges belong to the iteration that they start in,
// whatever their thread, with all of their GPU work.
func TestIteration(t *testing.T) {
	const us = 1000
	host := func(r row, thread, at, dur int64) row {
		maps.Copy(r, row{"pid": int64(1), "tid": thread, "start_ns": at * us, "dur_ns": dur * us, "end_ns": (at + dur) * us})
		return r
	}
	index := int64(0)
	next := func() int64 { index++; return index }
	op := func(thread, at, dur int64) row {
		return host(row{"event_index": next(), "category": "cpu_op", "name": "aten::mm", "input_dims": "[[8, 8], [8, 8]]", "input_types": `["float", "float"]`}, thread, at, dur)
	}
	mark := func(id string, at int64) row {
		return host(row{"event_index": next(), "name": "ProfilerStep#" + id, "category": "user_annotation", "iteration_id": id, "iteration_producer": "ProfilerStep"}, 1, at, 1000)
	}
	tables := map[string][]row{
		"traces": {{
			"outcome": "ok", "run": "job", "path": "/one", "gpu_events": int64(4), "linked_gpu_events": int64(3), "start_ns": int64(0), "end_ns": int64(9_000_000),
			"iteration_producer": "ProfilerStep",
		}},
		"ranges": {
			mark("1", 0), mark("2", 1000),
			host(row{"event_index": next(), "name": "epoch", "category": "user_annotation"}, 1, -5, 3000),
			host(row{"event_index": next(), "name": "step", "category": "user_annotation"}, 1, 900, 180),
			host(row{"event_index": next(), "name": "step", "category": "user_annotation"}, 2, 1400, 500),
		},
		"cpu_events": {
			op(1, 900, 200), op(2, 1500, 100), op(1, 2500, 100),
			host(row{"event_index": next(), "category": "python_function", "name": "f.py(1): f"}, 1, 890, 300),
			host(row{"event_index": next(), "category": "python_function", "name": "f.py(1): f"}, 1, 2490, 300),
		},
	}
	launch := func(thread, at, gpu, dur int64, iteration string) {
		l := call(next(), "cudaLaunchKernel", at*us, 5*us, row{"tid": thread})
		g := kernel(next(), "gemm", gpu*us, dur*us, row{"stream": int64(7), "launch_id": l["event_index"]})
		if iteration != "" {
			l["iteration_id"], g["iteration_id"] = iteration, iteration
		}
		tables["launches"], tables["gpu_events"] = append(tables["launches"], l), append(tables["gpu_events"], g)
	}
	launch(1, 950, 5000, 30, "1")
	launch(1, 1050, 5040, 20, "2") // in an operator of the iteration before
	launch(2, 1550, 5100, 10, "2")
	launch(1, 2550, 5200, 7, "")
	tables["launches"] = append(tables["launches"], call(next(), "cudaDeviceSynchronize", 1080*us, 10*us, row{"iteration_id": "2"}))
	db, _ := one(t, tables)
	for _, c := range []struct{ iteration, name, columns, want string }{
		{"1", "launches", "calls, gpu_events, mean_delay_us", "1,1,4050\n"},
		{"1", "queue", "launches, max", "1,1\n"},
		{"1", "ops", "name, calls, cpu_total_ms, gpu_total_ms, gpu_events", "aten::mm,1,0.2,0.05,2\n"},
		{"1", "python", "calls, cpu_total_ms, gpu_total_ms", "1,0.3,0.05\n"},
		{"1", "ranges", "name, ranges, range_ms, gpu_ms", "step,1,0.18,0.05\nProfilerStep#1,1,1,0.03\n"},
		{"1", "roofline", "op, count, gpu_ms", "aten::mm,1,0.05\neverything else,,0\n"},
		{"1", "sync", "op, calls", ""},
		{"2", "launches", "calls, gpu_events", "1,0\n2,2\n"},
		{"2", "queue", "launches", "2\n"},
		{"2", "ops", "name, calls, gpu_total_ms, gpu_events", "aten::mm,1,0.01,1\n"},
		{"2", "python", "calls", ""},
		{"2", "ranges", "name, ranges, gpu_ms", "ProfilerStep#2,1,0.02\nstep,1,0.01\n"},
		{"2", "roofline", "op, count, gpu_ms", "aten::mm,1,0.01\neverything else,,0.02\n"},
		{"2", "sync", "op, calls", "aten::mm,1\n"},
		{"3", "ops", "calls", ""},
		{"3", "ranges", "ranges", ""},
		{"3", "roofline", "count", ""},
	} {
		ask(t, db, "SET VARIABLE iteration = '"+c.iteration+"'; SELECT 1 AS x")
		if got, want := part(t, db, c.columns, c.name), strings.ReplaceAll(c.columns, " ", "")+"\n"+c.want; got != want {
			t.Errorf("%s of iteration %s:\n%swant\n%s", c.name, c.iteration, got, want)
		}
	}
	got := ask(t, db, "SET VARIABLE iteration = '2'; SELECT count(*) AS n, sum(gpu_ns) AS ns FROM launched")
	if got != "n,ns\n2,30000\n" {
		t.Errorf("launched: %s", got)
	}
	got = ask(t, db, "SELECT count(*) AS n, sum(gpu_total_ns) AS ns FROM host_tree('cpu_op')")
	if got != "n,ns\n1,10000\n" {
		t.Errorf("host_tree: %s", got)
	}
}
