"""GPU work, its launch and its operator, in the worker's own reading of a trace:
on traces made by hand, and on real ones against what the importer says."""

import collections
import csv
import gzip
import json

import pytest
from tracelake_worker import kernel_profile, kineto
from tracelake_worker.tracer import Context, Tracer

MAX_REAL_BYTES = 250_000


class Trace:
    """Events in the order in which they are given; times in microseconds."""

    def __init__(self):
        self.events = []

    def _add(self, cat, name, ts, dur, pid, tid, args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args})

    def op(self, name, ts, dur, external=None, sequence=None, tid=1, pid=1, cat="cpu_op", **args):
        ids = {"External id": external, "Sequence number": sequence}
        self._add(cat, name, ts, dur, pid, tid, {**{k: v for k, v in ids.items() if v is not None}, **args})

    def launch(self, ts, correlation, external=None, name="cudaLaunchKernel", cat="cuda_runtime", tid=1, pid=1, dur=1):
        ids = {"correlation": correlation, "External id": external}
        self._add(cat, name, ts, dur, pid, tid, {k: v for k, v in ids.items() if v is not None})

    def gpu(self, name, ts, dur, correlation=None, external=None, cat="kernel", stream=7, device=0):
        ids = {"correlation": correlation, "External id": external, "stream": stream, "device": device}
        self._add(cat, name, ts, dur, device, stream, {k: v for k, v in ids.items() if v is not None})

    def load(self, directory, reverse=False):
        path = directory / "t.json"
        events = self.events[::-1] if reverse else self.events
        path.write_text(json.dumps({"traceEvents": events}))
        return kineto.load(str(path), ("forward", "backward"))


def owners(profile):
    """Operator of each piece of GPU work, by the names of both."""
    return {g.name: g.op.name if g.op else None for g in profile.gpu}


def by_op(profile):
    return {(r["cpu_op_name"], r["occurrence"]): r for r in kernel_profile.rows(profile)}


def files(profile, directory):
    ctx = Context(job=None, output_dir=str(directory), tracer=Tracer())
    kernel_profile.write(ctx, profile, "torch")
    with open(directory / "torch_kernel_profile.csv", newline="") as f:
        return json.loads((directory / "torch_kernel_profile.json").read_text()), list(csv.DictReader(f))


def test_a_sequence_number_is_no_external_id(tmp_path):
    """The numbers of both kinds run over the same range."""
    t = Trace()
    t.op("aten::mm", 0, 10, external=5, sequence=9)
    t.launch(2, 100, external=5)
    t.op("aten::add", 20, 10, external=9, sequence=5)
    t.launch(22, 101, external=9)
    t.gpu("mm_kernel", 30, 4, 100, 5)
    t.gpu("add_kernel", 40, 4, 101, 9)
    p = t.load(tmp_path)
    assert owners(p) == {"mm_kernel": "aten::mm", "add_kernel": "aten::add"}


def test_forward_and_backward_share_a_sequence_number(tmp_path):
    """So do operators inside each other; each keeps its own name, time and kernels."""
    t = Trace()
    t.op("aten::linear", 0, 20, external=1, sequence=3)
    t.op("aten::mm", 5, 10, external=2, sequence=3)
    t.launch(6, 1, external=2)
    t.op("MmBackward0", 40, 30, external=3, sequence=3, tid=2)
    t.op("aten::mm", 45, 10, external=4, tid=2, sequence=3)
    t.launch(46, 2, external=4, tid=2)
    t.launch(60, 3, external=3, tid=2)
    t.gpu("forward", 100, 7, 1)
    t.gpu("backward", 110, 11, 2)
    t.gpu("other", 130, 13, 3)
    p = t.load(tmp_path)
    rows = by_op(p)
    assert {k: r["kernel_call_count"] for k, r in rows.items()} == {
        ("aten::mm", 1): {"forward": 1},
        ("MmBackward0", 2): {"other": 1},
        ("aten::mm", 3): {"backward": 1},
    }
    assert [r["total_kernel_time_us"] for r in rows.values()] == [7, 13, 11]
    assert [r["cpu_time_us"] for r in rows.values()] == [10, 30, 10]
    assert {r["sequence_number"] for r in rows.values()} == {3}


def test_counts_are_of_calls(tmp_path):
    """Three calls of an operator, two of which launch; four launches in all."""
    t = Trace()
    for i in range(3):
        t.op("aten::mm", 10 * i, 8, external=i + 1, sequence=1, **{"Input Dims": [[2, 3]], "Input type": ["float"]})
    for i, (at, name) in enumerate([(1, "a"), (2, "b"), (11, "a"), (12, "a")]):
        t.launch(at, i + 1, external=1 + at // 10)
        t.gpu(name, 100 + 10 * i, 2, i + 1)
    p = t.load(tmp_path)
    rows, table = files(p, tmp_path)
    assert table == [
        {"cpu_op_name": "aten::mm", "cpu_op_total_count": "3", "gpu_kernel_name": "a", "gpu_kernel_total_count": "3"},
        {"cpu_op_name": "aten::mm", "cpu_op_total_count": "3", "gpu_kernel_name": "b", "gpu_kernel_total_count": "1"},
    ]
    assert [r["launch_count"] for r in rows] == [2, 2]
    assert [r["kernel_call_count"] for r in rows] == [{"a": 1, "b": 1}, {"a": 2}]
    shape = "(('float', [2, 3]),)"
    assert [r["kernel_call_count_by_shape"] for r in rows] == [{shape: {"a": 1, "b": 1}}, {shape: {"a": 2}}]
    assert rows[0]["input_dims_count"] == {shape: 1}
    assert rows[0]["kernel_duration_stats_us"] == {"min": 2, "max": 2, "avg": 2}


def test_rows_hold_each_piece_of_work_once(tmp_path):
    t = Trace()
    t.op("outer", 0, 100, external=1)
    t.op("inner", 10, 50, external=2)
    for c, (at, external) in enumerate([(5, 1), (20, 2), (30, 2), (80, 1)], 1):
        t.launch(at, c, external)
        t.gpu(f"k{c}", 200 + 20 * c, c, c)
    t.gpu("stray", 400, 16, 77)
    rows, _ = files(t.load(tmp_path), tmp_path)
    assert sum(r["total_kernel_time_us"] for r in rows) == 1 + 2 + 3 + 4 + 16
    found = [k["kernel_name"] for r in rows for k in r["associated_kernels"]]
    assert sorted(found) == ["k1", "k2", "k3", "k4", "stray"]
    assert rows[-1]["cpu_op_name"] is None and rows[-1]["call_stack"] is None


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("cuda_driver", "cuLaunchKernelEx"),
        ("hip_runtime", "hipModuleLaunchKernel"),
        ("xpu_driver", "zeCommandListAppendLaunchKernel"),
        ("privateuse1_runtime", "launchKernel"),
        ("Runtime", "cudaLaunchKernel"),
    ],
)
def test_launches_of_drivers_and_other_vendors(tmp_path, category, name):
    """Triton and cuBLASLt launch through the driver."""
    t = Trace()
    t.op("aten::addmm", 0, 10, external=1)
    t.launch(3, 9, external=1, name=name, cat=category)
    t.gpu("triton_poi_fused_0", 20, 5, 9)
    (row,) = kernel_profile.rows(t.load(tmp_path))
    assert row["cpu_op_name"] == "aten::addmm" and row["associated_kernels"][0]["launched_by"] == name


def test_any_order_in_the_file(tmp_path):
    t = Trace()
    t.op("aten::mm", 0, 10, external=1)
    t.launch(3, 9, external=1)
    t.gpu("k", 20, 5, 9)
    assert owners(t.load(tmp_path, reverse=True)) == {"k": "aten::mm"}


def test_one_launch_of_a_cuda_graph_starts_many_kernels(tmp_path):
    t = Trace()
    t.op("replay", 0, 10, external=1)
    t.launch(3, 9, external=1, name="cudaGraphLaunch")
    for i in range(3):
        t.gpu(f"k{i}", 20 + 10 * i, 5, 9)
    t.launch(30, 10, name="cudaGraphLaunch")  # behind all operators
    t.gpu("late", 90, 5, 10)
    p = t.load(tmp_path)
    assert owners(p) == {"k0": "replay", "k1": "replay", "k2": "replay", "late": None}
    assert p.ops[0].launches == 1
    assert [g.launch.name for g in p.gpu] == ["cudaGraphLaunch"] * 4


def test_streams_are_streams_and_copies_are_no_kernels(tmp_path):
    t = Trace()
    t.op("aten::to", 0, 50, external=1)
    t.launch(3, 1, 1)
    t.launch(5, 2, 1, name="cudaMemcpyAsync")
    t.launch(7, 3, 1, name="cudaMemsetAsync")
    t.launch(9, 4, 1)
    t._add("kernel", "a", 20, 5, 0, 555, {"correlation": 1, "stream": 20, "device": 3})
    t.gpu("Memcpy HtoD", 30, 7, 2, cat="gpu_memcpy", stream=21)
    t.gpu("Memset", 40, 9, 3, cat="gpu_memset", stream=21)
    t.gpu("b", 50, 5, 4, stream=21)
    (row,) = kernel_profile.rows(t.load(tmp_path))
    assert row["kernel_call_count_by_stream"] == {"20": 1, "21": 1}
    assert [(k["kernel_name"], k["stream_id"]) for k in row["associated_kernels"]] == [("a", 20), ("b", 21)]
    assert row["associated_kernels"][0]["device"] == 3
    assert row["total_kernel_time_us"] == 10 and row["total_memory_op_time_us"] == 16
    assert [m["kind"] for m in row["associated_memory_ops"]] == ["memcpy", "memset"]


def test_zero_is_no_id(tmp_path):
    t = Trace()
    t.op("aten::mm", 0, 10, external=0)
    t.launch(20, 0, external=0)
    t.gpu("k", 30, 5, 0, 0)
    p = t.load(tmp_path)
    assert owners(p) == {"k": None} and p.gpu[0].launch is None


def test_work_without_a_correlation_id(tmp_path):
    """By External id, if one call only can have started it."""
    t = Trace()
    t.op("aten::copy_", 0, 10, external=5)
    t.launch(2, 11, external=5, name="hipMemcpyWithStream", cat="hip_runtime")
    t.launch(6, 12, external=5, name="hipStreamSynchronize", cat="hip_runtime")
    t.op("aten::mm", 20, 10, external=6)
    t.launch(22, 13, external=6)
    t.launch(24, 14, external=6)
    t.gpu("copy", 40, 5, external=5, cat="gpu_memcpy")
    t.gpu("either", 50, 5, external=6)
    p = t.load(tmp_path)
    assert p.gpu[0].launch.name == "hipMemcpyWithStream" and p.gpu[1].launch is None
    assert owners(p) == {"copy": "aten::copy_", "either": "aten::mm"}


def test_a_launch_before_the_window(tmp_path):
    """The External id of the work still says which operator asked."""
    t = Trace()
    t.op("aten::mm", 0, 10, external=5)
    t.gpu("k", 40, 5, correlation=9, external=5)
    p = t.load(tmp_path)
    assert owners(p) == {"k": "aten::mm"} and p.gpu[0].launch is None


def test_external_ids_that_are_something_else(tmp_path):
    """Profilers of 2023 write correlation IDs there; some are those of an operator."""
    t = Trace()
    for i in range(20):
        t.op(f"op{i}", 10 * i, 8, external=i + 1)
        t.launch(10 * i + 2, i + 2, external=i + 2)
        t.gpu(f"k{i}", 500 + 10 * i, 5, i + 2, i + 2)
    t.gpu("before", 400, 5, 900, 3)
    p = t.load(tmp_path)
    assert owners(p) == {**{f"k{i}": f"op{i}" for i in range(20)}, "before": None}


def test_threads_that_are_counted_differently(tmp_path):
    """Old profilers know runtime calls by another thread number; the id helps."""
    t = Trace()
    t.op("aten::mm", 0, 10, external=1, tid=1)
    t.launch(3, 9, external=1, tid=77)
    t.gpu("k", 20, 5, 9)
    assert owners(t.load(tmp_path)) == {"k": "aten::mm"}


def test_processes_that_share_a_correlation_id(tmp_path):
    t = Trace()
    for pid in (1, 2):
        t.op("aten::mm", 0, 10, external=pid, pid=pid)
        t.launch(3, 9, external=pid, pid=pid)
    t.gpu("k", 20, 5, 9)
    t.gpu("told", 30, 5, 9, external=2)
    p = t.load(tmp_path)
    assert [g.launch for g in p.gpu] == [None, None]
    assert owners(p)["k"] is None and p.gpu[1].op.pid == 2


def test_a_launch_at_the_end_of_an_operator_is_not_in_it(tmp_path):
    """Times of whole microseconds touch."""
    t = Trace()
    t.op("outer", 0, 20, external=1)
    t.op("aten::empty", 2, 3, external=2)
    t.op("aten::view", 5, 0, external=3)
    t.launch(5, 9, external=1)
    t.gpu("k", 20, 5, 9)
    assert owners(t.load(tmp_path)) == {"k": "outer"}


def test_long_times_keep_their_nanoseconds(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(
        '[{"ph":"X","cat":"kernel","name":"k","ts":1764668000123456.789,"dur":0.501,"pid":0,"tid":7,"args":{}},'
        '{"ph":"X","cat":"kernel","name":"l","ts":5888649824325.1875,"dur":1,"pid":0,"tid":7,"args":{}}]'
    )
    one, two = kineto.load(str(path)).gpu
    assert (one.start, one.duration, two.start) == (1764668000123456789, 501, 5888649824325188)


@pytest.mark.parametrize("text", ["", "{}", '{"traceEvents":[{"ph":"X"', '{"traceEvents":[{"ph":"X"},]'])
def test_damaged_traces_are_named(tmp_path, text):
    path = tmp_path / "t.json"
    path.write_text(text)
    if text.endswith(",]"):
        assert kineto.load(str(path)).ops == []
    else:
        with pytest.raises(ValueError, match=str(path)):
            kineto.load(str(path))


INNERMOST = """
WITH s AS (SELECT * FROM host_segments('cpu_op') WHERE end_ns > start_ns OR end_ns IS NULL)
SELECT t.path, coalesce(t.base_ns, 0) AS base, g.name, g.correlation, g.start_ns, g.dur_ns,
  l.api, l.start_ns AS launch_ns, e.name AS op, e.start_ns AS op_ns
FROM gpu_events AS g
JOIN traces AS t ON t.trace_id = g.trace_id
LEFT JOIN launches AS l ON l.trace_id = g.trace_id AND l.event_index = g.launch_id
ASOF LEFT JOIN s ON s.trace_id = l.trace_id AND s.pid = l.pid::VARCHAR AND s.tid = l.tid::VARCHAR AND s.start_ns <= l.start_ns
LEFT JOIN cpu_events AS e ON e.trace_id = s.trace_id AND e.event_index = s.event_index"""


def real_traces(shared):
    found = sorted(p for p in (shared / "traces" / "kineto").rglob("*.json*") if p.is_file() and p.stat().st_size < MAX_REAL_BYTES)
    return [p for p in found if b'"correlation"' in (gzip.open(p).read() if p.suffix == ".gz" else p.read_bytes())]


def test_the_importer_links_real_traces_in_the_same_way(shared, tracelake, tmp_path):
    lake = tmp_path / "lake"
    paths = real_traces(shared)
    tracelake("convert", *paths, "-o", lake, ok=(0, 3))
    imported = collections.defaultdict(list)
    for line in tracelake("sql", lake, INNERMOST, "--format", "json").stdout.splitlines():
        row = json.loads(line)
        imported[row["path"]].append(row)
    assert len(imported) > 30
    linked = with_op = 0
    for path in paths:
        rows = imported.get(str(path), [])
        if not rows:
            continue  # holds no GPU work, or is a copy of another file
        profile = kineto.load(str(path))
        ours = collections.Counter(
            (
                g.name,
                g.start,
                g.duration,
                g.correlation or None,
                g.launch and g.launch.name,
                g.launch and g.launch.start,
                g.op.name if g.launch and g.op else None,
                g.op.start if g.launch and g.op else None,
            )
            for g in profile.gpu
        )

        def at(value, row):
            return None if value is None else value - row["base"]

        theirs = collections.Counter(
            (
                r["name"],
                at(r["start_ns"], r),
                r["dur_ns"],
                r["correlation"],
                r["api"],
                at(r["launch_ns"], r),
                r["op"],
                at(r["op_ns"], r),
            )
            for r in rows
        )
        assert ours == theirs, path
        linked += sum(g.launch is not None for g in profile.gpu)
        with_op += sum(g.op is not None for g in profile.gpu)
        table = kernel_profile.rows(profile)
        assert sum(len(r["associated_kernels"]) + len(r["associated_memory_ops"]) for r in table) == len(profile.gpu)
        total = sum(g.duration for g in profile.gpu if g.kind == "kernel") / 1000
        assert sum(r["total_kernel_time_us"] for r in table) == pytest.approx(total)
    assert linked > 10_000 and with_op > 8_000
