//go:build cgo && !noduckdb

package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tracelake/analyze/query"
	"tracelake/collected"
	"tracelake/schema/columnar"
)

const collectDemo = "../testdata/collect"

// ask returns the answer of a query, cells separated by blanks and rows by
// line feeds.
func ask(t *testing.T, lake, sql string) string {
	t.Helper()
	db, err := query.Open(context.Background(), lake, query.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	cells := make([]any, len(rows.Columns()))
	for {
		if err := rows.Next(cells); errors.Is(err, io.EOF) {
			return strings.Join(out, "\n")
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSuffix(fmt.Sprintln(cells...), "\n"))
	}
}

func expect(t *testing.T, lake, sql, want string) {
	t.Helper()
	if got := ask(t, lake, sql); got != want {
		t.Errorf("%s\ngot:\n%s\nwant:\n%s", sql, got, want)
	}
}

// copyTree copies testdata, so that a test can change it.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "out")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func replaceIn(t *testing.T, path, from, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), from) {
		t.Fatalf("%s has no %q", path, from)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(b), from, to)), 0o644); err != nil {
		t.Fatal(err)
	}
	// The time of a file is part of what tells that it was imported.
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func TestCollectOutput(t *testing.T) {
	lake := filepath.Join(t.TempDir(), "lake")
	_, sum := mustRun(t, Options{Output: lake}, collectDemo)
	if sum.OK != 3 || sum.EmptyJobs != 1 || sum.Bad() {
		t.Fatalf("%+v", sum)
	}
	expect(t, lake, `SELECT source, run, model, revision[:4], framework, mode, tracer, tracer_version, job_key FROM traces ORDER BY tracer`,
		"tables acme-tiny-llama-eval acme/tiny-llama 0123 huggingface eval torch_dispatch 1 key-of-torch_dispatch\n"+
			"tables acme-tiny-llama-eval acme/tiny-llama 0123 huggingface eval torch_inductor 1 key-of-torch_inductor\n"+
			"kineto acme-tiny-llama-eval acme/tiny-llama 0123 huggingface eval torch_profiler 1 key-of-torch_profiler")
	expect(t, lake, `SELECT name, phase, flops, sequence_nr, tracer FROM ops ORDER BY op_index`,
		"aten::mm forward 256 9007199254740993 torch_dispatch\naten::silu forward <nil> <nil> torch_dispatch")
	expect(t, lake, `SELECT op, count, share, is_view, model FROM x_op_counts ORDER BY op`,
		"aten.mm.default 1 0.25 false acme/tiny-llama\naten.mul.Tensor 3 0.75 false acme/tiny-llama")
	expect(t, lake, `SELECT count(*), count(DISTINCT trace_id), (SELECT count(*) FROM fusions), (SELECT count(*) FROM kernels_generated), (SELECT count(*) FROM guards) FROM graph_nodes`,
		"11 1 3 2 0")
	_, again := mustRun(t, Options{Output: lake}, collectDemo)
	if again.Skipped != 3 || again.Done != 0 {
		t.Errorf("again: %+v", again)
	}
	before := parts(t, lake)
	if _, forced := mustRun(t, Options{Output: lake, Force: true, Workers: 1}, collectDemo); forced.OK != 3 {
		t.Errorf("forced: %+v", forced)
	}
	same(t, "--force", before, parts(t, lake))
}

// TestFXToKernels runs the shipped query from an FX node to its kernels.
func TestFXToKernels(t *testing.T) {
	lake := filepath.Join(t.TempDir(), "lake")
	mustRun(t, Options{Output: lake}, collectDemo)
	a, ok := query.Lookup("fx_to_kernels")
	if !ok {
		t.Fatal("no analysis fx_to_kernels")
	}
	got := strings.ReplaceAll(ask(t, lake, a.SQL), ask(t, lake, "SELECT trace_id FROM traces WHERE tracer = 'torch_profiler'"), "PROFILE")
	for _, want := range []string{
		"acme/tiny-llama eval dynamo/0 z operator.matmul layers.0.mlp.down_proj mm inductor/0 extern_kernels.mm extern torch_profiler PROFILE cpu aten::mm 1 20000",
		"acme/tiny-llama eval dynamo/0 z operator.matmul layers.0.mlp.down_proj mm inductor/0 extern_kernels.mm extern torch_profiler PROFILE gpu ampere_sgemm_32x32 1 5000",
		"acme/tiny-llama eval dynamo/0 y torch.nn.functional.silu layers.0.mlp.act_fn sigmoid inductor/0 triton_poi_fused_mul_sigmoid_0 triton torch_profiler PROFILE gpu triton_poi_fused_mul_sigmoid_0 2 10000",
		"acme/tiny-llama eval dynamo/0 y torch.nn.functional.silu layers.0.mlp.act_fn mul inductor/0 triton_poi_fused_mul_sigmoid_0 triton torch_profiler PROFILE gpu triton_poi_fused_mul_sigmoid_0 2 10000",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if n := strings.Count(got, "\n") + 1; n != 4 {
		t.Errorf("%d rows:\n%s", n, got)
	}
}

// TestRunAgain checks that a job that ran again takes the place of its earlier
// run, with equal and with other tables, and that nothing else goes.
func TestRunAgain(t *testing.T) {
	out := copyTree(t, collectDemo)
	lake := filepath.Join(t.TempDir(), "lake")
	mustRun(t, Options{Output: lake}, out)
	job := filepath.Join(out, "acme/tiny-llama/eval/torch_inductor")
	tables := "SELECT string_agg(kernel, ' ' ORDER BY kernel), count(DISTINCT trace_id) FROM kernels_generated"
	traces := "SELECT count(*) FROM traces"

	replaceIn(t, filepath.Join(job, collected.StatusFile), `"success": true`, `"success":  true`)
	replaceIn(t, filepath.Join(job, "tables/kernels_generated.jsonl"), "triton_poi", "triton_red")
	if _, sum := mustRun(t, Options{Output: lake}, out); sum.OK != 1 || sum.Superseded != 1 || sum.Skipped != 2 {
		t.Errorf("other tables: %+v", sum)
	}
	expect(t, lake, tables, "extern_kernels.mm triton_red_fused_mul_sigmoid_0 1")
	expect(t, lake, traces, "3")

	replaceIn(t, filepath.Join(job, collected.StatusFile), `"success":  true`, `"success":   true`)
	replaceIn(t, filepath.Join(job, "tables/kernels_generated.jsonl"), "triton_red", "triton_red")
	if _, sum := mustRun(t, Options{Output: lake}, out); sum.OK != 1 || sum.Superseded != 0 || sum.Duplicates != 0 {
		t.Errorf("equal tables: %+v", sum)
	}
	expect(t, lake, tables, "extern_kernels.mm triton_red_fused_mul_sigmoid_0 1")
	expect(t, lake, traces, "3")

	// A profiler writes a file of another name each time.
	profile := filepath.Join(out, "acme/tiny-llama/eval/torch_profiler")
	if err := os.Rename(filepath.Join(profile, "trace/host_7.1.pt.trace.json"), filepath.Join(profile, "trace/host_9.2.pt.trace.json")); err != nil {
		t.Fatal(err)
	}
	replaceIn(t, filepath.Join(profile, "trace/host_9.2.pt.trace.json"), "ampere", "hopper")
	replaceIn(t, filepath.Join(profile, collected.StatusFile), "host_7.1", "host_9.2")
	if _, sum := mustRun(t, Options{Output: lake}, out); sum.OK != 1 || sum.Superseded != 1 {
		t.Errorf("other trace: %+v", sum)
	}
	expect(t, lake, "SELECT string_agg(name, ' ' ORDER BY name) FROM gpu_events", "hopper_sgemm_32x32 triton_poi_fused_mul_sigmoid_0 triton_poi_fused_mul_sigmoid_0")

	// Traces that were removed after their import stay in the dataset.
	if err := os.RemoveAll(filepath.Join(profile, "trace")); err != nil {
		t.Fatal(err)
	}
	if _, sum := mustRun(t, Options{Output: lake}, out); sum.Superseded != 0 {
		t.Errorf("removed: %+v", sum)
	}
	expect(t, lake, "SELECT count(*) FROM gpu_events", "3")
}

// TestCopyOfAJob checks that a copy of a job is a duplicate while the original
// is there, and has the rows when the original ran again.
func TestCopyOfAJob(t *testing.T) {
	out := copyTree(t, collectDemo)
	lake := filepath.Join(t.TempDir(), "lake")
	mustRun(t, Options{Output: lake}, out)
	second := copyTree(t, out)
	if _, sum := mustRun(t, Options{Output: lake}, second); sum.Duplicates != 3 {
		t.Errorf("copy: %+v", sum)
	}
	job := filepath.Join(out, "acme/tiny-llama/eval/torch_inductor")
	replaceIn(t, filepath.Join(job, collected.StatusFile), `"success": true`, `"success":  true`)
	replaceIn(t, filepath.Join(job, "tables/kernels_generated.jsonl"), "triton_poi", "triton_red")
	mustRun(t, Options{Output: lake}, out)
	mustRun(t, Options{Output: lake}, second)
	expect(t, lake, "SELECT count(DISTINCT trace_id), count(*) FROM kernels_generated", "2 4")
}

// TestCopiesOfOneRun checks that files with the content of a trace that a job
// replaced keep it in the dataset where they are among the inputs, copies of the
// job and files of its new attempt, and are named where they are not.
func TestCopiesOfOneRun(t *testing.T) {
	out := copyTree(t, collectDemo)
	second := copyTree(t, out)
	lake := filepath.Join(t.TempDir(), "lake")
	mustRun(t, Options{Output: lake}, out)
	if _, sum := mustRun(t, Options{Output: lake}, second); sum.Duplicates != 3 {
		t.Fatalf("%+v", sum)
	}
	kernels := "SELECT count(DISTINCT trace_id), count(*) FROM kernels_generated"
	dangling := "SELECT count(*) FROM traces WHERE duplicate_of NOT IN (SELECT trace_id FROM traces)"
	job := filepath.Join(out, "acme/tiny-llama/eval/torch_inductor")
	replaceIn(t, filepath.Join(job, collected.StatusFile), `"success": true`, `"success":  true`)
	replaceIn(t, filepath.Join(job, "tables/kernels_generated.jsonl"), "triton_poi", "triton_red")
	if _, sum := mustRun(t, Options{Output: lake}, out, second); sum.Inputs != 6 || sum.OK != 2 || sum.Skipped != 4 || sum.Superseded != 1 || sum.Notices != nil {
		t.Errorf("%+v", sum)
	}
	expect(t, lake, kernels, "2 4")
	expect(t, lake, dangling, "0")

	// A further attempt leaves the same trace under another name.
	profile := filepath.Join(out, "acme/tiny-llama/eval/torch_profiler")
	trace := filepath.Join(profile, "trace/host_7.1.pt.trace.json")
	if err := os.Rename(trace, strings.Replace(trace, "host_7.1", "host_9.2", 1)); err != nil {
		t.Fatal(err)
	}
	replaceIn(t, filepath.Join(profile, collected.StatusFile), "host_7.1", "host_9.2")
	_, sum := mustRun(t, Options{Output: lake}, out)
	if sum.OK != 1 || sum.Duplicates != 0 || sum.Superseded != 1 || len(sum.Notices) != 1 || !strings.Contains(sum.Notices[0], second) {
		t.Errorf("%+v", sum)
	}
	expect(t, lake, "SELECT count(DISTINCT trace_id), count(*) FROM gpu_events", "1 3")
	expect(t, lake, dangling, "0")
	if _, sum := mustRun(t, Options{Output: lake}, out, second); sum.Duplicates != 1 || sum.Skipped != 5 {
		t.Errorf("%+v", sum)
	}
}

// TestListCopies checks that a list has what lost its rows with a trace that its
// job replaced.
func TestListCopies(t *testing.T) {
	out := copyTree(t, collectDemo)
	second := copyTree(t, out)
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Writer: "tracelake test"}
	mustRun(t, o, out)
	mustRun(t, o, second)
	job := filepath.Join(out, "acme/tiny-llama/eval/torch_inductor")
	replaceIn(t, filepath.Join(job, collected.StatusFile), `"success": true`, `"success":  true`)
	replaceIn(t, filepath.Join(job, "tables/kernels_generated.jsonl"), "triton_poi", "triton_red")
	member := o
	member.Member = true
	mustRun(t, member, job)
	todo, sum := list(t, o, out, second)
	if want := filepath.Join(second, "acme/tiny-llama/eval/torch_inductor"); len(todo) != 1 || todo[0] != want || sum.Superseded != 1 || len(sum.Notices) != 1 {
		t.Fatalf("%v, %+v", todo, sum)
	}
	mustRun(t, member, todo...)
	if todo, sum := list(t, o, out, second); len(todo) != 0 || sum.Notices != nil {
		t.Errorf("%v, %+v", todo, sum)
	}
	expect(t, o.Output, "SELECT count(DISTINCT trace_id), count(*) FROM kernels_generated", "2 4")
}

// TestShards checks that the shares of a job that left several traces do not take
// each other's for those of an earlier attempt.
func TestShards(t *testing.T) {
	out := copyTree(t, collectDemo)
	profile := filepath.Join(out, "acme/tiny-llama/eval/torch_profiler")
	trace := filepath.Join(profile, "trace/host_7.1.pt.trace.json")
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	const traces, shares = 8, 3
	var artifacts []string
	for i := range traces {
		name := fmt.Sprintf("trace/host_%d.pt.trace.json", i)
		artifacts = append(artifacts, fmt.Sprintf(`{"path": %q, "kind": "trace"}`, name))
		if err := os.WriteFile(filepath.Join(profile, name), []byte(strings.ReplaceAll(string(text), "ampere", fmt.Sprintf("ampere%d", i))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(trace); err != nil {
		t.Fatal(err)
	}
	replaceIn(t, filepath.Join(profile, collected.StatusFile), `"artifacts": [`, `"artifacts": [`+strings.Join(artifacts, ",")+",")
	replaceIn(t, filepath.Join(profile, collected.StatusFile), `"path": "trace/host_7.1.pt.trace.json"`, `"path": "trace/host_0.pt.trace.json"`)
	lake := filepath.Join(t.TempDir(), "lake")
	for attempt := range 2 {
		if attempt > 0 { // half of the traces stay as they were
			for i := range traces / 2 {
				replaceIn(t, filepath.Join(profile, fmt.Sprintf("trace/host_%d.pt.trace.json", i)), "ampere", "hopper")
			}
			replaceIn(t, filepath.Join(profile, collected.StatusFile), `"success": true`, `"success":  true`)
		}
		all, err := Discover([]string{out})
		if err != nil {
			t.Fatal(err)
		}
		inputs := 0
		for i := range shares {
			found := all.Shard(i, shares)
			inputs += len(found.Inputs)
			if _, err := Run(t.Context(), found, Options{Output: lake, Writer: "tracelake test"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if inputs != len(all.Inputs) || inputs != traces+2 {
			t.Errorf("%d of %d inputs", inputs, len(all.Inputs))
		}
		expect(t, lake, "SELECT count(DISTINCT trace_id), count(DISTINCT trace_id) FILTER (name LIKE 'hopper%') FROM gpu_events", fmt.Sprint(traces, attempt*traces/2))
	}
}

func TestBrokenTables(t *testing.T) {
	out := copyTree(t, collectDemo)
	job := filepath.Join(out, "acme/tiny-llama/eval/torch_inductor/tables")
	replaceIn(t, filepath.Join(job, "fusions.jsonl"), `"node": "mul"`, `"node": 7, "extra": 1`)
	replaceIn(t, filepath.Join(job, "op_counts.jsonl"), `{"op": "aten.mul.Tensor"`, `{"op"; "aten.mul.Tensor"`)
	replaceIn(t, filepath.Join(job, "graph_nodes.jsonl"), `"table": "graph_nodes"`, `"tabel": "graph_nodes"`)
	if err := os.Remove(filepath.Join(job, "kernels_generated.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "acme/tiny-llama/eval/torch_dispatch", collected.StatusFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	lake := filepath.Join(t.TempDir(), "lake")
	reports, sum := mustRun(t, Options{Output: lake}, out)
	if sum.OK != 1 || sum.Partial != 1 || sum.Failed != 1 {
		t.Errorf("%+v", sum)
	}
	if r := reports[collected.StatusFile]; !strings.Contains(r.Failed, "torch_dispatch/"+collected.StatusFile) {
		t.Errorf("broken status: %+v", r)
	}
	expect(t, lake, "SELECT code, sum(count), min(message) FROM diagnostics WHERE severity = 'data_loss' GROUP BY code ORDER BY code",
		`table_row 1 tables/op_counts.jsonl:3: the line is no JSON object`+"\n"+
			`table_unread 2 tables/graph_nodes.jsonl:1: the first line is no header of a table: it has no "table"`+"\n"+
			`table_value 2 tables/fusions.jsonl:3: column node is string and not 7; the value is left out`)
	expect(t, lake, "SELECT outcome, (SELECT count(*) FROM fusions), (SELECT count(*) FROM x_op_counts) FROM traces WHERE tracer = 'torch_inductor'", "partial 3 1")
	_, strict := mustRun(t, Options{Output: filepath.Join(t.TempDir(), "strict"), Strict: true}, filepath.Dir(job))
	if strict.Failed == 0 {
		t.Errorf("strict: %+v", strict)
	}
}

// TestTableOnItsOwn checks a table file that is named itself, inside and
// outside the output of a job.
func TestTableOnItsOwn(t *testing.T) {
	lake := filepath.Join(t.TempDir(), "lake")
	file := filepath.Join(collectDemo, "acme/tiny-llama/eval/torch_dispatch/tables/ops.jsonl")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "alone.jsonl")
	if err := os.WriteFile(alone, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, sum := mustRun(t, Options{Output: lake}, file, alone); sum.OK != 2 {
		t.Fatalf("%+v", sum)
	}
	expect(t, lake, "SELECT model, tracer, count(*) FROM ops GROUP BY ALL ORDER BY ALL", "acme/tiny-llama torch_dispatch 2\n<nil> torch_dispatch 2")
}

// TestInterruptedTables checks that an import that was stopped leaves nothing
// visible and that the next one does all of it.
func TestInterruptedTables(t *testing.T) {
	lake := filepath.Join(t.TempDir(), "lake")
	found, err := Discover([]string{filepath.Join(collectDemo, "acme/tiny-llama/eval/torch_inductor")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{Output: lake, Writer: "tracelake test", Progress: func(string, int64) { cancel() }}
	if _, err := Run(ctx, found, o, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	if err := filepath.WalkDir(lake, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Base(p) != "format.json" && filepath.Base(p) != "layout.lock" {
			t.Errorf("left behind: %s", p)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, sum := mustRun(t, Options{Output: lake}, filepath.Join(collectDemo, "acme/tiny-llama/eval/torch_inductor")); sum.OK != 1 {
		t.Errorf("%+v", sum)
	}
	expect(t, lake, "SELECT count(*) FROM graph_nodes", "11")
}

func TestTablesAsArrow(t *testing.T) {
	lake := filepath.Join(t.TempDir(), "lake")
	_, sum := mustRun(t, Options{Output: lake, Format: columnar.Arrow}, collectDemo)
	files, err := filepath.Glob(filepath.Join(lake, "x_op_counts/*/*/*.arrow"))
	if sum.OK != 3 || err != nil || len(files) != 1 {
		t.Errorf("%+v %v %v", sum, files, err)
	}
}

func TestSomeTables(t *testing.T) {
	lake := filepath.Join(t.TempDir(), "lake")
	mustRun(t, Options{Output: lake, Tables: []string{"fusions", "x_op_counts"}}, collectDemo)
	entries, err := os.ReadDir(lake)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "_tracelake diagnostics fusions traces x_op_counts" {
		t.Error(got)
	}
}

// TestRunNotices checks that the view of diagnostics says about runs what the
// summary says.
func TestRunNotices(t *testing.T) {
	dir := t.TempDir()
	for name, rank := range map[string]string{"a.json": "0", "b.json": "0", "c.json": "5"} {
		text := `{"distributedInfo": {"rank": ` + rank + `, "world_size": 8}, "traceName": "` + name + `", "traceEvents": [{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":1,"dur":1}]}`
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lake := filepath.Join(t.TempDir(), "lake")
	_, sum := mustRun(t, Options{Output: lake, Run: "r"}, dir)
	if len(sum.Notices) != 2 {
		t.Errorf("%v", sum.Notices)
	}
	notices := `SELECT code, severity, count, message, run, rank, trace_id IN (SELECT trace_id FROM traces) FROM diagnostics WHERE code IN ('same_rank', 'missing_ranks') ORDER BY ALL`
	expect(t, lake, notices,
		"missing_ranks notice 6 run r: 6 of 8 ranks are missing, first 1, 2, 3, 4, 6, 7 r -1 true\n"+
			"same_rank notice 1 run r: 2 traces state rank 0 r 0 true\n"+
			"same_rank notice 1 run r: 2 traces state rank 0 r 0 true")
	huge := `{"distributedInfo": {"rank": 1, "world_size": 4611686018427387904}, "traceEvents": [{"ph":"X","cat":"cpu_op","name":"x","pid":1,"tid":1,"ts":1,"dur":1}]}`
	if err := os.WriteFile(filepath.Join(dir, "d.json"), []byte(huge), 0o644); err != nil {
		t.Fatal(err)
	}
	mustRun(t, Options{Output: lake, Run: "r"}, dir)
	expect(t, lake, `SELECT count FROM diagnostics WHERE code = 'missing_ranks'`, "4611686018427387901")
	expect(t, lake, `SELECT count(*) FROM (DESCRIBE diagnostics)`, "9")
}

// TestNamedLinks checks that links to directories are entered where the user named
// them, also by a pattern, and nowhere else.
func TestNamedLinks(t *testing.T) {
	dir := t.TempDir()
	in := copyTree(t, collectDemo)
	job := filepath.Join(in, "acme/tiny-llama/eval/torch_profiler")
	// The trace is found by its name.
	replaceIn(t, filepath.Join(job, collected.StatusFile), `"kind": "trace"`, `"kind": "other"`)
	for link, to := range map[string]string{"all": in, "job": job, "all2": filepath.Join(dir, "all")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		arg string
		ok  int
	}{{"all", 3}, {"all2", 3}, {"al[k-m]", 3}, {"job", 1}} {
		_, sum := mustRun(t, Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}, filepath.Join(dir, c.arg))
		if sum.OK != c.ok || sum.Bad() {
			t.Errorf("%s: %+v", c.arg, sum)
		}
	}
	if found, err := Discover([]string{dir}); !errors.Is(err, ErrNoInputs) {
		t.Errorf("below a directory: %+v, %v", found, err)
	}
	report := filepath.Join(sharedTraces(t), "nsys/synthetic/e2026_pqtdir")
	abs, err := filepath.Abs(report)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "report_pqtdir")
	if err := os.Symlink(abs, link); err != nil {
		t.Fatal(err)
	}
	reports, sum := mustRun(t, Options{Output: filepath.Join(t.TempDir(), "lake")}, link)
	if size, err := OutputBytes(report); sum.OK != 1 || err != nil || reports["report_pqtdir"].Bytes != size {
		t.Errorf("report of %d bytes: %+v", size, reports)
	}
}
