//go:build cgo && !noduckdb

package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tracelake/schema/lake"
)

const (
	planTraces = 3
	planSteps  = 1500 // iterations of a trace
	// No operator may see that many times the rows of the dataset: joining two
	// tables by trace alone makes it planSteps times as many.
	planFactor = 20
)

// steps are the tables of a trace with planSteps iterations. In each an
// operator, called from Python, launches a kernel and a collective on two
// streams; every tenth waits for the GPU.
func steps(rank int64) (tables map[string][]row, total int64) {
	tables = map[string][]row{
		"devices": {{"ordinal": int64(0), "name": "NVIDIA H100", "gpu_events": int64(2 * planSteps)}},
	}
	var index int64
	put := func(table string, r row, start, dur int64) int64 {
		index++
		r["event_index"], r["start_ns"], r["dur_ns"], r["end_ns"] = index, start, dur, start+dur
		if table != "gpu_events" {
			r["pid"], r["tid"] = int64(1), int64(1)
		}
		tables[table] = append(tables[table], r)
		return index
	}
	for i := range int64(planSteps) {
		at := i * 1000
		id := fmt.Sprint(i)
		mark := put("ranges", row{"name": "ProfilerStep#" + id, "category": "user_annotation", "iteration_id": id, "iteration_producer": "ProfilerStep"}, at, 900)
		put("cpu_events", row{"category": "python_function", "name": "f.py(1): f"}, at+1, 800)
		put("cpu_events", row{"category": "cpu_op", "name": "aten::mm", "input_dims": "[[8, 8], [8, 8]]", "input_types": `["float", "float"]`}, at+10, 700)
		put("instants", row{"name": "[memory]", "device_id": int64(0), "device_type": int64(1), "bytes": int64(512), "total_allocated_bytes": i}, at+5, 0)
		for k, name := range []string{"gemm", "ncclDevKernel_AllReduce"} {
			k := int64(k)
			call := put("launches", row{"api": "cudaLaunchKernel", "correlation": index, "gpu_event_count": int64(1), "iteration_id": id, "iteration_range": mark}, at+20+100*k, 5)
			put("gpu_events", row{
				"kind": "gpu_kernel", "name": name, "device": int64(0), "stream": 7 + k, "link_status": "linked", "launch_id": call,
				"iteration_id": id, "iteration_range": mark, "iteration_producer": "ProfilerStep",
			}, at+40+100*k+rank, 90)
		}
		if i%10 == 0 {
			put("launches", row{"api": "cudaDeviceSynchronize", "correlation": index, "iteration_id": id, "iteration_range": mark}, at+300, 100)
		}
	}
	for _, rows := range tables {
		total += int64(len(rows))
	}
	tables["traces"] = []row{{
		"outcome": "ok", "run": "job", "rank": rank, "path": "/t", "start_ns": int64(0), "end_ns": int64(planSteps * 1000),
		"gpu_events": int64(2 * planSteps), "linked_gpu_events": int64(2 * planSteps), "launches": int64(len(tables["launches"])),
	}}
	return tables, total
}

// many makes a dataset of planTraces such traces, with total rows.
func many(t testing.TB) (root string, total int64) {
	t.Helper()
	l, err := lake.Create(filepath.Join(t.TempDir(), "lake"), "test")
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(planTraces) {
		tables, n := steps(i)
		add(t, l, strings.Repeat("m", int(i)+1), &i, tables)
		total += n
	}
	return l.Root(), total
}

// operator is a part of a plan that was carried out.
type operator struct {
	Name     string         `json:"type"`
	Rows     int64          `json:"intermediate_rows"`
	Extra    map[string]any `json:"extra_info"`
	Children []operator     `json:"children"`
}

// byTrace matches conditions that hold for all rows of a trace or run.
var byTrace = regexp.MustCompile(`^(trace_id|trace|run|rank) = (trace_id|trace|run|rank)$`)

// pairs returns how many pairs of rows a join looks at, as far as its
// conditions tell: those of equal traces where they ask for no more, and all
// where there is nothing to look up.
func (o *operator) pairs() int64 {
	if len(o.Children) != 2 || !strings.HasSuffix(o.Name, "JOIN") {
		return 0
	}
	all := o.Children[0].Rows * o.Children[1].Rows
	if strings.Contains(o.Name, "NL") || strings.Contains(o.Name, "NESTED") {
		return all
	}
	conditions, ok := o.Extra["Conditions"].([]any)
	if !ok {
		conditions = []any{o.Extra["Conditions"]}
	}
	for _, c := range conditions {
		if !byTrace.MatchString(fmt.Sprint(c)) {
			return 0
		}
	}
	return all / planTraces
}

// worst returns the largest number of rows or pairs of an operator, and it.
func (o *operator) worst() (int64, string) {
	most, name := max(o.Rows, o.pairs()), fmt.Sprint(o.Name, " ", o.Extra["Conditions"])
	for i := range o.Children {
		if n, child := o.Children[i].worst(); n > most {
			most, name = n, child
		}
	}
	return most, name
}

// TestPlans asserts that no step of an analysis joins events with all events of
// their trace.
func TestPlans(t *testing.T) {
	root, total := many(t)
	db := open(t, root)
	plans(t, db, total)
	ask(t, db, "SET VARIABLE iteration = '7'; SELECT 1 AS x")
	plans(t, db, total)
}

func plans(t *testing.T, db *DB, total int64) {
	for _, a := range Analyses() {
		t.Run(a.Name, func(t *testing.T) {
			_, sql, _ := strings.Cut("\n"+a.SQL, "\nWITH")
			if sql == "" {
				_, sql, _ = strings.Cut("\n"+a.SQL, "\nSELECT")
				sql = "SELECT" + sql
			} else {
				sql = "WITH" + sql
			}
			r, err := db.Query(t.Context(), "EXPLAIN (ANALYZE, FORMAT json) "+sql)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			v := make([]any, 2)
			if err := r.Next(v); err != nil {
				t.Fatal(err)
			}
			var plan struct{ Operator []operator }
			if err := json.Unmarshal([]byte(v[1].(string)), &plan); err != nil {
				t.Fatal(err)
			}
			if len(plan.Operator) == 0 {
				t.Fatal("no plan")
			}
			root := operator{Children: plan.Operator}
			if n, name := root.worst(); n > planFactor*total {
				t.Errorf("%s looks at %d rows, of a dataset of %d", name, n, total)
			} else {
				t.Logf("at most %d rows of %d: %s", n, total, name)
			}
		})
	}
}

// TestApart asserts that an analysis that is asked for a few traces at a time
// answers as its SQL does over all, and leaves the selection as it was.
func TestApart(t *testing.T) {
	root, _ := many(t)
	db := open(t, root)
	a, _ := Lookup("critical-path")
	if !a.Apart {
		t.Fatal("critical-path does not stand apart")
	}
	want := ask(t, db, a.SQL)
	if n := strings.Count(want, "\n"); n < planTraces*planSteps {
		t.Fatalf("%d rows", n)
	}
	defer func(n int64) { batchEvents = n }(batchEvents)
	for _, batchEvents = range []int64{1, 8 * planSteps, 1 << 40} {
		r, err := db.Analyze(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Print(&out, CSV, r); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("batches of %d events: %d bytes, want %d", batchEvents, out.Len(), len(want))
		}
		if got := ask(t, db, "SELECT count(*) AS n FROM selected_traces"); got != fmt.Sprintf("n\n%d\n", planTraces) {
			t.Errorf("selected afterwards: %s", got)
		}
	}
}

// TestOrder asserts that the sums that rows are gone through in order for are
// right where there are many rows: DuckDB hands them over in chunks, from
// several threads.
func TestOrder(t *testing.T) {
	root, _ := many(t)
	db := open(t, root)
	for name, want := range map[string]string{
		"ops":    fmt.Sprintf("aten::mm,,,%d,%g,%g,%g,%g,%d,100\n", 4500, 3.15, 3.15, 0.81, 0.81, 9000),
		"python": fmt.Sprintf("f.py(1): f,%d,%g,%g,%g,%g\n", 4500, 0.81, 0.81, 3.6, 3.6),
	} {
		a, _ := Lookup(name)
		got := ask(t, db, a.SQL)
		if _, row, _ := strings.Cut(got, "\n"); row != want {
			t.Errorf("%s: %s, want %s", name, row, want)
		}
	}
	sum := ask(t, db, "SELECT sum(self_ns)::BIGINT AS self, sum(gpu_total_ns)::BIGINT AS gpu, max(depth) AS depth FROM host_tree('cpu_op')")
	if want := "self,gpu,depth\n3150000,810000,1\n"; sum != want {
		t.Errorf("host_tree: %s, want %s", sum, want)
	}
}
