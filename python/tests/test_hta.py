"""Figures equal those of HolisticTraceAnalysis, on every real trace it can read.

The package runs in its own environment (TRACELAKE_HTA_PYTHON, or .venv-hta of
make test). Three comparisons:

  copies   all GPU work and calls of a trace, in whole µs: every figure is equal
  kept     its answers to the trace itself are ours over the rows that it keeps
  wrong    where it is wrong, both values, and why
"""

import json
import os
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import hta_model
import pytest
from conftest import ROOT

# Calls that the package knows: those it has launch statistics for, and those
# that enter its queues.
STATISTICS = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"}
QUEUES = STATISTICS | {
    "cuLaunchKernel",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipMemsetAsync",
    "hipMemcpyAsync",
    "hipMemcpyWithStream",
}


def interpreter():
    named = os.environ.get("TRACELAKE_HTA_PYTHON")
    path = Path(named) if named else ROOT / ".venv-hta" / "bin" / "python"
    if named or path.exists():
        return path
    pytest.skip("SKIPPED: no HolisticTraceAnalysis: make venv-hta installs it, TRACELAKE_HTA_PYTHON names an interpreter that has it")


def trace_name(path):
    """A name that an original and its copies share."""
    path = str(path)
    for root in ("/traces/kineto/", "/copies/", "/kept/"):
        path = path.rpartition(root)[2] if root in path else path
    return path.replace("/", "__").removesuffix(".gz")


def start_hta(paths, directory, name):
    """Starts the package over the files; its answers go to a file."""
    questions = directory / f"{name}.questions"
    questions.write_text("".join(f"{p}\n" for p in paths))
    command = [str(interpreter()), str(Path(__file__).with_name("hta_figures.py"))]
    with questions.open() as i, (directory / f"{name}.answers").open("w") as o, (directory / f"{name}.log").open("w") as e:
        return subprocess.Popen(command, stdin=i, stdout=o, stderr=e)


def answers(process, directory, name):
    assert process.wait(timeout=500) == 0, (directory / f"{name}.log").read_text()[-2000:]
    rows = [json.loads(line) for line in (directory / f"{name}.answers").read_text().splitlines()]
    return {trace_name(r["path"]): r for r in rows}


class Ours:
    """What tracelake analyze says of every trace of a directory."""

    def __init__(self, tracelake, inputs, lake):
        tracelake("convert", inputs, "-o", lake, "-q")

        def ask(name, *flags):
            out = tracelake("analyze", name, lake, "--format", "json", *flags).stdout
            return [json.loads(line) for line in out.splitlines()]

        names = {r["trace_id"]: trace_name(r["path"]) for r in ask("summary")}
        self.names = set(names.values())
        for name in ("devices", "idle", "overlap", "queue"):
            rows = defaultdict(list)
            for r in ask(name):
                rows[names[r["trace_id"]]].append(r)
            setattr(self, name, rows)
        self.kernels, self.launches = defaultdict(list), defaultdict(list)
        for r in ask("kernels", "--by", "trace+name", "--set", "kinds=all", "--top", "1000000"):
            trace, _, r["name"] = r["name"].partition(" | ")
            self.kernels[names[trace]].append(r)
        for r in ask("launches", "--by", "trace+api"):
            trace, _, r["api"] = r["api"].partition(" | ")
            self.launches[names[trace]].append(r)


class Parity:
    def __init__(self, tracelake, shared, directory):
        traces = sorted(p for p in (shared / "traces" / "kineto").rglob("*") if p.name.endswith((".json", ".json.gz")))
        # It ends on the two largest traces, after a long time.
        originals = start_hta([p for p in traces if p.stat().st_size < 3_200_000 or p.suffix == ".json"], directory, "originals")
        copies, kept = directory / "copies", directory / "kept"
        copies.mkdir()
        kept.mkdir()
        self.seen = {}
        for path in traces:
            name, doc = trace_name(path), hta_model.load(path)
            seen = self.seen[name] = hta_model.Seen(doc["traceEvents"])
            hta_model.write_copy(doc, name, copies / name)
            if seen.missing:
                hta_model.write_copy(doc, name, kept / name, seen.work)
            del seen.kept, seen.work
        process = start_hta(sorted(copies.iterdir()), directory, "copies")
        self.ours = Ours(tracelake, shared / "traces" / "kineto", directory / "lake")
        self.ours_copies = Ours(tracelake, copies, directory / "copies.lake")
        ours_kept = Ours(tracelake, kept, directory / "kept.lake")
        self.over_kept = {n: ours_kept if n in ours_kept.names else self.ours_copies for n in self.seen}
        self.hta = answers(originals, directory, "originals")
        self.hta_copies = answers(process, directory, "copies")


@pytest.fixture(scope="module")
def parity(tracelake, shared, tmp_path_factory):
    interpreter()
    return Parity(tracelake, shared, tmp_path_factory.mktemp("hta"))


def us(rows, column):
    return sum(r[column] for r in rows) / 1000


# Each comparison returns the two values that must be equal, or None where the
# trace has nothing of the kind.


def temporal(hta, ours, name):
    rows = ours.devices[name]
    return hta["temporal"], {"idle_time": us(rows, "idle_ns"), "compute_time": us(rows, "compute_ns"), "kernel_time": us(rows, "window_ns")}


def types(hta, ours, name):
    """Its mixes, such as "A overlapping B", count for each of their types."""
    theirs = Counter()
    for mix, time in hta["kernels"]["types"].items():
        for one in mix.split(" overlapping "):
            theirs[one] += time
    rows = ours.devices[name]
    mine = {"COMPUTATION": us(rows, "compute_ns"), "COMMUNICATION": us(rows, "communication_ns"), "MEMORY": us(rows, "memory_ns")}
    return {k: v for k, v in theirs.items() if v}, {k: v for k, v in mine.items() if v}


def kernels(hta, ours, name):
    theirs = {n: [total, low, high, mean, deviation] for n, _, total, low, high, mean, deviation in hta["kernels"]["names"]}
    mine = {r["name"]: [r["total_ns"] / 1000, r["min_us"], r["max_us"], r["mean_us"], r["stddev_us"] or 0] for r in ours.kernels[name]}
    return {n: pytest.approx(v, abs=0.00051) for n, v in theirs.items()}, mine


def overlap(hta, ours, name):
    rows = ours.overlap[name]
    return (hta["overlap"], rows[0]["hidden_pct"]) if rows or hta["overlap"] is not None else None


def idle(hta, ours, name):
    """By stream, host wait and the rest: we split the rest by its reason."""
    theirs, mine = Counter(), Counter()
    for stream, category, time in hta["idle"]:
        theirs[stream, category == "host_wait"] += time or 0
    for r in ours.idle[name]:
        if r["stream"] is not None:
            mine[r["stream"], r["reason"] == "host"] += r["idle_ns"] / 1000
    return {k: v for k, v in theirs.items() if v}, {k: v for k, v in mine.items() if v}


def kernel_wait(hta, ours, name):
    """Gaps under the limit, on streams where all of the rest is short or long."""
    finer = {r["stream"] for r in ours.idle[name] if r["reason"] in ("graph", "other_stream", "unknown")}
    theirs = Counter({s: t for s, category, t in hta["idle"] if category == "kernel_wait" and t and s not in finer})
    mine = Counter()
    for r in ours.idle[name]:
        if r["reason"] == "short" and r["stream"] not in finer | {None}:
            mine[r["stream"]] += r["idle_ns"] / 1000
    return (theirs, mine) if theirs or mine else None


def launches(hta, ours, name):
    """launch_delay is the wait after the call; means as both print them."""
    theirs = hta["launches"]
    rows = [r for r in ours.launches[name] if r["api"] in STATISTICS and r["launching"]]
    count = sum(r["launching"] for r in rows)
    if count == 0 and theirs["rows"] == 0:
        return None

    def mean(column):
        return sum(r[column] * r["launching"] for r in rows) / count

    call = mean("mean_delay_us") - mean("mean_queue_us")
    gpu = [theirs["delay"] / theirs["rows"], theirs["cpu"] / theirs["rows"]]
    return [theirs["rows"], theirs["shorter"], pytest.approx(gpu, abs=0.0011)], [
        count,
        sum(r["shorter_than_call"] for r in rows),
        [mean("mean_wait_us"), call],
    ]


def queue(hta, ours, name):
    """Launches and the longest queue by stream, where it knows every call.

    It adds and takes within one µs in any order, so its queue may be longer.
    """
    known = {r["api"] for r in ours.launches[name] if r["launching"]} <= QUEUES
    if not known:
        # Over all streams: what it misses are the calls that it does not know.
        mine = sum(r["launching"] for r in ours.launches[name] if r["api"] in QUEUES)
        return sum(count // 2 for _, count, _, _ in hta["queue"]), mine
    theirs = {stream: (count // 2, longest) for stream, count, longest, _ in hta["queue"]}
    mine = {r["stream"]: (r["launches"], r["max"]) for r in ours.queue[name]}
    for stream, (count, longest) in mine.items():
        if theirs.get(stream, (0, 0))[0] == count and 0 <= theirs[stream][1] - longest <= TIES.get((name, stream), 0):
            theirs[stream] = (count, longest)
    return theirs, mine


# Streams on which its queue is longer, as a launch and a start lie in the same µs.
TIES = {
    ("HolisticTraceAnalysis__critical_path-cuda_event_sync_multi_stream__event_sync_trace.json", 28): 1,
    ("kineto__docs-traces__after_fix_trace.json", 1): 1,
    ("kineto__docs-traces__before_fix_trace.json", 1): 1,
    ("torchrec__golden_training-log-resnet18__host_85866.1698107929560561434.pt.trace.json", 7): 1,
}
COMPARED = (temporal, types, kernels, overlap, idle, kernel_wait, launches, queue)

GEMM = "TraceLens__gemm-gemm_0{}_analysis_output__gemm_0{}.json"
QUANTIZED = "ao__tutorials-{}.json"
# Traces without a stream on their kernels: it takes none of them for GPU work.
NO_STREAM = {GEMM.format(x, x) for x in ("2_compute_non_pow2", "4_memory_tall_skinny")}
# Idle time of a stream on which events overlap: it adds a gap below 0 for each
# overlap, so that its idle time is too short. In µs: it, tracelake.
OVERLAPPING = {
    ("HolisticTraceAnalysis__negative_queue_length_values_check__rank0.json", 27): (11097, 11099),
    ("HolisticTraceAnalysis__trace_diff-test__test.json", 7): (105700, 105815),
    ("TraceLens__b200__eager_trace.json", 7): (566, 576),
    (QUANTIZED.format("quantize_vit__bfloat16@30d33bf0"), 148): (2222, 2228),
    (QUANTIZED.format("static_quantize_prune_vit__bfloat16"), 148): (2514, 2525),
    (QUANTIZED.format("static_quantize_prune_vit__bfloat16@4cb46701"), 148): (2250, 2254),
    (QUANTIZED.format("static_quantize_prune_vit__bfloat16@705c740b"), 148): (2160, 2161),
    ("segment-anything-fast__amg_example__amg_example_trace.json", 164): (256, 262),
    ("segment-anything-fast__amg_example__amg_example_trace@7fdc6de4.json", 164): (259, 260),
}
OVERLAPPED = {name for name, _ in OVERLAPPING}
GAPS = {"idle", "kernel_wait"}
# It gives work without a launch the launch time of row 0, here a late one.
ROW_0 = {"param__et_replay-tests-inputs-dlrm_kineto.tar.gz.d-dlrm_kineto__worker1_step_12.1694128201556.pt.trace.json"}
# What it cannot read: it keeps indices in the smallest type that holds the
# correlation IDs, and ends where an index does not fit; or it wants "args" to
# be an object.
UNREADABLE = {
    "TypeError: Invalid value": {
        "TraceLens__attention-sdpa_01_long_seq_low_eff_analysis_output__sdpa_01_long_seq_low_eff.json",
        "TraceLens__attention-sdpa_02_very_long_seq_head_waste_analysis_output__sdpa_02_very_long_seq_head_waste.json",
        "TraceLens__attention-sdpa_03_short_seq_overhead_analysis_output__sdpa_03_short_seq_overhead.json",
        "TraceLens__attention-sdpa_04_large_head_dim_analysis_output__sdpa_04_large_head_dim.json",
        "TraceLens__inference-vllm_prefilldecode_piecewise-capture_traces__graph_capture_rank_0.1773709679453551615.pt.trace.json",
        "TraceLens__torch_compile_triton__trace.json",
    },
    "AttributeError: 'list' object": {"kineto-spyre__tb_plugin-samples-resnet50_num_workers_0__worker0@68232cbc.pt.trace.json"},
}


# It knows the kernels of NCCL alone as communication, and takes the all-reduce of
# symmetric memory (multimem_all_reduce_kernel, 2047 µs) for computation. In µs: it,
# tracelake.
B200 = "TraceLens__b200__eager_trace.json"
SYMMETRIC = {
    (B200, "temporal"): (
        {"compute_time": 10080, "idle_time": 73742, "kernel_time": 84486},
        {"compute_time": 8033, "idle_time": 73742, "kernel_time": 84486},
    ),
    (B200, "types"): (
        {"COMPUTATION": 10080, "COMMUNICATION": 21, "MEMORY": 643},
        {"COMPUTATION": 8033, "COMMUNICATION": 2068, "MEMORY": 643},
    ),
}


def compare(hta, ours):
    """Counts what is equal, and returns what is not: (trace, comparison): both values."""
    equal, different = Counter(), {}
    for name in sorted(set(ours) & set(hta)):
        if "error" in hta[name] or not ours[name].devices[name]:
            continue
        for check in COMPARED:
            answer = hta[name][{"types": "kernels", "kernel_wait": "idle"}.get(check.__name__, check.__name__)]
            if isinstance(answer, dict) and "error" in answer:
                different[name, check.__name__] = answer["error"], None
                continue
            values = check(hta[name], ours[name], name)
            if values is None:
                continue
            if values[0] == values[1]:
                equal[check.__name__] += 1
            else:
                different[name, check.__name__] = values
    return equal, different


def idle_of(hta, ours, name, stream):
    theirs = sum(time or 0 for s, category, time in hta[name]["idle"] if s == stream and category != "host_wait")
    return theirs, us([r for r in ours.idle[name] if r["stream"] == stream and r["reason"] != "host"], "idle_ns")


def test_copies(parity):
    """Over the same events in whole µs everything is equal, but what is listed."""
    equal, different = compare(parity.hta_copies, {n: parity.ours_copies for n in parity.ours_copies.names})
    for stream, values in OVERLAPPING.items():
        assert idle_of(parity.hta_copies, parity.ours_copies, *stream) == values
    unexplained = {
        (name, check): values
        for (name, check), values in different.items()
        if name not in NO_STREAM and not (check in GAPS and name in OVERLAPPED)
    }
    assert unexplained == SYMMETRIC
    counts = {"temporal": 106, "types": 106, "kernels": 107, "queue": 107, "idle": 98, "launches": 85, "overlap": 34}
    assert {k: equal[k] for k in counts} == counts and equal["kernel_wait"] > 70


def test_originals(parity):
    """Its answers to the traces themselves are ours over the rows that it keeps."""
    for name, answer in parity.hta.items():
        if "error" in answer:
            assert any(answer["error"].startswith(error) and name in names for error, names in UNREADABLE.items()), (name, answer)
        else:
            seen = parity.seen[name]
            assert answer["gpu_rows"] == seen.rows, name
    equal, different = compare(parity.hta, parity.over_kept)
    unexplained = {
        (name, check): values
        for (name, check), values in different.items()
        if not parity.seen[name].strange and not parity.seen[name].negative and not (check in GAPS and name in OVERLAPPED | ROW_0)
    }
    assert unexplained == {}
    counts = {"temporal": 79, "types": 91, "kernels": 81, "queue": 99, "idle": 81, "launches": 82, "overlap": 34}
    assert {k: equal[k] for k in counts} == counts
    assert sum(s.missing > 0 and s.steps > 1 for s in parity.seen.values()) == 34


def window(hta, ours, name):
    return hta["temporal"]["kernel_time"], us(ours.devices[name], "window_ns")


def computing(hta, ours, name):
    return hta["temporal"]["compute_time"], us(ours.devices[name], "compute_ns")


def ends(hta, ours, name):
    return hta["temporal"]["error"], us(ours.devices[name], "window_ns")


def unread(hta, ours, name):
    return hta["error"].partition(" ")[0], us(ours.devices[name], "window_ns")


def kernel_rows(hta, ours, name):
    return hta["gpu_rows"], sum(r["gpu_events"] for r in ours.devices[name])


def shortest(hta, ours, name):
    return min(low for _, _, _, low, _, _, _ in hta["kernels"]["names"]), min(r["min_us"] for r in ours.kernels[name])


def launched(hta, ours, name):
    return hta["launches"]["rows"], sum(r["launching"] for r in ours.launches[name])


def queued(hta, ours, name):
    return sum(count // 2 for _, count, _, _ in hta["queue"]), sum(r["launches"] for r in ours.queue[name])


HTA = "HolisticTraceAnalysis__{}.json"
GRAPHS = "PyTorch-CUDA-Graph-Capture-Examples__{}.json"
SAMPLE = "kineto__tb_plugin-samples-resnet50_num_workers_0__worker0.1623143089861.pt.trace.json"
DECODE = "TraceLens__inference-sglang_decode__sglang_Qwen3-8B_decode.json"
TRITON = HTA.format("triton_example__triton_example@671fcc11")
ALEXNET = HTA.format("critical_path-alexnet__benchmark_result_2869224_1695835535_trace")
SYNC = "rows of synchronisation (cuda_sync) count as GPU work, though the GPU waits in them"
STEPS = "what the last ProfilerStep launched is left out unless asked for, and the window ends with the rest; ours is the whole trace"
CPU_OP = "operators that carry a stream (Triton's) count as GPU work, though they are CPU time"
BELOW = "a length below 1 µs becomes -1 once its start is rounded up and its end down; ours is in ns"
LAUNCHING = "cudaLaunchKernel, cudaLaunchKernelExC and asynchronous copies and sets count as launches, of HIP none; ours: all with GPU work"
QUEUEING = "graph launches and newer calls are missing from the list of launches; ours are all calls with GPU work"
STREAMS = "kernels without a stream are not taken for GPU work, and without any the analysis ends; a stream does not decide that"

# Where it is wrong: trace, figure, its value, ours of the trace itself, why
# ours is right. Times in µs.
WRONG = (
    (ALEXNET, kernel_rows, 139, 98, SYNC),
    (ALEXNET, window, 12996011, 12920244, SYNC),
    (HTA.format("critical_path-cuda_event_sync__event_sync_trace@0372850c"), window, 336, 263, SYNC),
    (HTA.format("critical_path-cuda_event_sync_multi_stream__event_sync_trace"), computing, 371, 369, SYNC),
    (SAMPLE, kernel_rows, 7580, 9096, STEPS),
    (SAMPLE, window, 830494, 996477, STEPS),
    (SAMPLE, computing, 492891, 591532, STEPS),
    (SAMPLE, launched, 7580, 9096, STEPS),
    (HTA.format("df_index_resolver__df_index_resolver"), kernel_rows, 17832, 22290, STEPS),
    (HTA.format("trace_diff-control__control"), window, 383404, 464594, STEPS),
    (TRITON, kernel_rows, 2, 1, CPU_OP),
    (TRITON, computing, 71, 2.24, CPU_OP),
    ("ao__torchao-prototype-server-amg_example__amg_example_trace.json", kernel_rows, 916, 858, CPU_OP),
    ("TraceLens__b200__eager_trace.json", kernel_rows, 930, 929, CPU_OP),
    (GRAPHS.format("trace_with_manual_capture"), shortest, -1, 0.224, BELOW),
    ("TraceLens__h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json", shortest, -1, 0.767, BELOW),
    ("TraceLens__h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json", ends, "AssertionError: ", 49652.832, BELOW),
    ("kineto__docs-traces__after_fix_trace.json", ends, "AssertionError: ", 0.02, BELOW),
    (GRAPHS.format("trace_with_make_graphed_callables"), launched, 66, 91, LAUNCHING),
    ("astra-sim__my_test-inputs-workload-megatron-tp8__megatron_kineto_0.json", launched, 657, 777, LAUNCHING),
    ("TraceLens__mi300-ddp_resnet18_no_pool__train_resnet18.json", launched, 0, 2375, LAUNCHING),
    (DECODE, launched, 0, 15, LAUNCHING),
    (DECODE, queued, 13, 15, QUEUEING),
    ("TraceLens__b200__eager_trace.json", queued, 709, 929, QUEUEING),
    ("kineto-spyre__tb_plugin-samples-resnet50_autograd_api_num_workers_0__worker0.pt.trace.json", queued, 10129, 10133, QUEUEING),
    (
        GEMM.format("2_compute_non_pow2", "2_compute_non_pow2"),
        ends,
        "IndexError: single positional indexer is out-of-bounds",
        1071,
        STREAMS,
    ),
    ("TraceLens__torch_compile_triton__trace.json", unread, "TypeError:", 12549.032, "an index does not fit the smallest integer type"),
)


def test_wrong(parity):
    """Both values where it is wrong."""
    for name, figure, theirs, mine, why in WRONG:
        assert figure(parity.hta[name], parity.ours, name) == (theirs, pytest.approx(mine, abs=1e-6)), (name, figure.__name__, why)
    name = next(iter(ROW_0))
    assert idle_of(parity.hta, parity.ours, name, 7) == (115, 208)
