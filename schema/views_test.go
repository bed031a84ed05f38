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
shared = {"selected_traces", "gpu_work", "gpu_work_anytime", "launch_calls", "gpu_parts", "gpu_states", "launched", "launched_anytime", "device_peaks", "host_calls"}
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

// TestClasses: which kernels communicate.
func TestClasses(t *testing.T) {
	for class, names := range map[string][]string{
		"communication": {
			"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
			"void rcclGenericKernel<1, false>(ncclDevComm*, unsigned long, ncclWork*)",
			"ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs)",
			"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)",
			"void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8>(aiter::RankData*)",
			"void sglang::reduce_scatter_cross_device_store<float>(float*)",
			"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long, unsigned int**, unsigned long, unsigned long)",
			"void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float, 16>(float*, float*)",
			"void (anonymous namespace)::multimem_all_gather_kernel<16>(char*, char*, unsigned long)",
			"_multimem_all_gather_kernel",
			"void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**, c10::BFloat16*)",
			"void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 16, 8, true, false>(c10::BFloat16**)",
			"void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(c10::BFloat16**, unsigned long)",
			"void c10d::intra_node_comm::oneShotAllReduceKernel<2u, true>(c10::BFloat16*, unsigned long)",
			"void c10d::intra_node_comm::twoShotAllReduceKernel<8u>(c10::BFloat16*)",
			"void c10d::intra_node_comm::hybridCubeMeshAllReduceKernel<true>(c10::BFloat16*, unsigned long)",
			"c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)",
			"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, false, false>()",
			"void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<(unsigned char)4, __nv_bfloat16, true>()",
			"void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_twoshot_sync<1>()",
			"void tensorrt_llm::kernels::moeAllToAllKernel(tensorrt_llm::kernels::MoeEpWorldInfo)",
			"void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<__half>, __half>(__half const*)",
			"void userbuffers_fp16_sum_inplace_gpu_mc_rs_oop<8>(int, int)",
			"void deep_ep::intranode::dispatch<8>()",
			"nvshmemi_transfer_rma_p",
		},
		"compute": {
			"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(at::native::ReduceOp<float>)",
			"void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>)",
			"triton_poi_fused_add_all_reduce_4", "triton_red_fused_all_gather_into_tensor_reduce_scatter_kernel_1",
			"void at::native::vectorized_gather_kernel<16, long>(char*)", "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
			"_finalize_matmul_scatter_bf16", "ampere_sgemm_128x64_tn",
		},
	} {
		want := ""
		for _, name := range names {
			want += class + " " + name + "\n"
		}
		if got := macro(t, "gpu_class('gpu_kernel', ?, NULL)", names...); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
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
