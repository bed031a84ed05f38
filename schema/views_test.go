package schema_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tracelake/schema"
	"tracelake/schema/columnar"
)

const viewsScript = `
import sys, duckdb
con = duckdb.connect()
con.execute(open(sys.argv[1]).read())
shared = {"selected_traces", "gpu_work", "launch_calls", "gpu_states", "launched", "device_peaks", "host_calls"}
for name, columns in con.execute("""
    SELECT table_name, count(*) FROM information_schema.columns GROUP BY ALL ORDER BY table_name""").fetchall():
    if name in shared:
        con.execute(f"SELECT * FROM {name}").fetchall()
        continue
    rows = con.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
    types = dict(con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {name})").fetchall())
    print(name, columns, rows, types.get("run"), types.get("rank"))
print(con.execute("SELECT run, rank FROM gpu_events ORDER BY rank").fetchall())
`

// python returns a Python that has DuckDB.
func python(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("TRACELAKE_PYTHON")
	if bin == "" {
		bin = filepath.Join("..", ".venv", "bin", "python")
		if _, err := os.Stat(bin); err != nil {
			const why = "NOT TESTED against DuckDB: set TRACELAKE_PYTHON or make .venv in the root of the repository"
			fmt.Fprintln(os.Stderr, why)
			t.Skip(why)
		}
	}
	return bin
}

// TestViews runs the views in DuckDB over a lake whose path needs quoting.
func TestViews(t *testing.T) {
	bin := python(t)
	root := filepath.Join(t.TempDir(), "it's [a] *lake*? {b,c} 100% é")
	var want strings.Builder
	lines := map[string]string{}
	var absent []string
	for _, table := range schema.Tables {
		partitioned := table.Name != schema.TableTraces.Name
		n, rows := len(table.Columns), 0
		switch table {
		case &schema.TableTraces:
			writeRow(t, filepath.Join(root, "traces", "part-1.parquet"), table)
			rows = 1
		case &schema.TableGPUEvents:
			writeRow(t, filepath.Join(root, "gpu_events", "run=2026", "rank=-1", "part-1.parquet"), table)
			writeRow(t, filepath.Join(root, "gpu_events", "run=true", "rank=7", "part-1.parquet"), table)
			rows = 2
		default:
			absent = append(absent, table.Name)
		}
		run, rank := "VARCHAR", "BIGINT"
		if partitioned {
			n += 2
		}
		lines[table.Name] = fmt.Sprintf("%s %d %d %s %s", table.Name, n, rows, run, rank)
	}
	for _, name := range sortedKeys(lines) {
		want.WriteString(lines[name] + "\n")
	}
	want.WriteString("[('2026', -1), ('true', 7)]\n")
	sql := filepath.Join(t.TempDir(), "views.sql")
	if err := os.WriteFile(sql, []byte(schema.ViewsSQL(root, absent...)), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(bin, "-c", viewsScript, sql).CombinedOutput()
	if err != nil || string(got) != want.String() {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want.String())
	}
}

// writeRow writes a file with one row that has only the values it must have.
func writeRow(t *testing.T, path string, table *schema.Table) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := columnar.CreateParquet(out, table, columnar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cols := make([]columnar.Vector, len(table.Columns))
	for i := range cols {
		if !table.Columns[i].Nullable && table.Columns[i].Name != "trace_id" { // Close says it
			cols[i] = columnar.Vector{Vals: []int64{0}, Dict: []string{"x"}}
		}
	}
	if err := w.Append(1, cols); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close("0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

const macrosScript = `
import sys, duckdb
con = duckdb.connect()
con.execute(open(sys.argv[1]).read())
macro = sys.argv[2]
for x in sys.argv[3:]:
    print(con.execute(f"SELECT {macro}", [x]).fetchone()[0], x)
`

// macro returns what a macro makes of each text, a line per text.
func macro(t *testing.T, call string, texts ...string) string {
	t.Helper()
	var absent []string
	for _, table := range schema.Tables {
		absent = append(absent, table.Name)
	}
	sql := filepath.Join(t.TempDir(), "views.sql")
	if err := os.WriteFile(sql, []byte(schema.ViewsSQL(t.TempDir(), absent...)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python(t), append([]string{"-c", macrosScript, sql, call}, texts...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestWaits: which calls wait for the GPU.
func TestWaits(t *testing.T) {
	for waits, calls := range map[string][]string{
		"True": {
			"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaStreamSynchronize_ptsz", "cudaEventSynchronize", "cudaThreadSynchronize",
			"cudaMemcpy", "cudaMemcpy_ptds", "cudaMemcpy2D", "cudaMemcpy3D", "cudaMemcpy2DToArray", "cudaMemcpyFromArray", "cudaMemcpy2DArrayToArray",
			"cudaMemcpyToSymbol", "cudaMemcpyFromSymbol", "cudaFree", "cudaFree_v3020",
			"cuCtxSynchronize", "cuStreamSynchronize", "cuMemcpy", "cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2_ptds", "cuMemcpyDtoD", "cuMemcpyAtoH_v2", "cuMemcpy2DUnaligned_v2", "cuMemcpy3D_v2", "cuMemFree_v2",
			"hipDeviceSynchronize", "hipStreamSynchronize", "hipStreamSynchronize_spt", "hipEventSynchronize",
			"hipMemcpy", "hipMemcpy_spt", "hipMemcpyWithStream", "hipMemcpyDtoH", "hipMemcpyHtoD", "hipMemcpyDtoD", "hipMemcpyAtoH", "hipMemcpyParam2D", "hipMemcpyToSymbol", "hipMemcpy2DFromArray", "hipDrvMemcpy3D",
			"hipFree", "hipHostFree", "hipFreeHost",
		},
		"False": {
			"cudaMemcpyAsync", "cudaMemcpy2DAsync", "cudaMemcpyToSymbolAsync", "cudaMemcpyPeer", "cudaMemcpy3DPeer", "cudaMemset", "cudaFreeAsync", "cudaFreeHost", "cudaEventQuery", "cudaStreamWaitEvent",
			"cuMemcpyDtoHAsync_v2", "cuMemcpyPeer", "cuMemFreeAsync", "cuMemFreeHost", "hipMemcpyAsync", "hipMemcpyDtoHAsync", "hipMemcpyParam2DAsync", "hipFreeAsync", "hipLaunchKernel",
		},
	} {
		want := ""
		for _, call := range calls {
			want += waits + " " + call + "\n"
		}
		if got := macro(t, "waits_for_gpu(?)", calls...); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}
