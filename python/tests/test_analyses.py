"""Analyses against slow, obvious computations over the same random traces."""

import json
import random
import statistics
from collections import defaultdict

import duckdb
import pytest
from conftest import ROOT


def analyze(tracelake, lake, name, *flags):
    out = tracelake("analyze", name, lake, "--format", "json", *flags).stdout
    return [json.loads(line) for line in out.splitlines()]


class Trace:
    """A random trace: nested operators that launch work onto a few streams."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.events, self.gpu, self.launches, self.ops, self.steps = [], [], [], [], []
        self.correlation = 0
        now = 1000
        for step in range(3):
            start = now
            for _ in range(self.random.randint(1, 4)):
                now = self.op(now, 0)
                now += self.random.randint(0, 40)
            self.steps.append({"name": f"ProfilerStep#{step}", "ts": start, "dur": now - start})
            now += self.random.randint(1, 20)
        for s in self.steps:
            self.add("user_annotation", s["name"], s["ts"], s["dur"], 1, 1, {})

    def add(self, cat, name, ts, dur, pid, tid, args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args})

    def op(self, at, depth):
        start, r = at, self.random
        at += r.randint(0, 3)
        own = {"name": f"aten::op{r.randint(0, 4)}", "start": start, "inside": [], "launched": []}
        for _ in range(r.randint(0, 3)):
            if depth < 3 and r.random() < 0.5:
                child_at = at
                at = self.op(at, depth + 1)
                own["inside"].append(self.ops[-1])
                assert self.ops[-1]["start"] == child_at
            else:
                at = self.launch(at, own)
            at += r.randint(0, 5)
        at += r.randint(1, 3)
        own["end"] = at
        self.ops.append(own)
        self.add("cpu_op", own["name"], start, at - start, 1, 1, {"External id": len(self.ops)})
        return at

    def launch(self, at, op):
        r = self.random
        self.correlation += 1
        call = {"start": at, "end": at + r.randint(1, 9), "correlation": self.correlation, "gpu": None}
        api = r.choice(["cudaLaunchKernel", "cudaMemcpyAsync"])
        self.add("cuda_runtime", api, at, call["end"] - at, 1, 1, {"correlation": self.correlation})
        call["api"] = api
        self.launches.append(call)
        op["launched"].append(call)
        if r.random() < 0.9:
            stream = r.choice([7, 7, 20])
            before = max((g["end"] for g in self.gpu if g["stream"] == stream), default=0)
            start = max(before, at + r.randint(0, 30)) + r.randint(0, 4)
            cat, name = "kernel", r.choice(["gemm", "softmax", "ncclDevKernel_AllReduce"])
            if api == "cudaMemcpyAsync":
                cat, name = "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"
            work = {"start": start, "end": start + r.randint(0, 40), "stream": stream, "name": name, "cat": cat, "call": call}
            self.gpu.append(work)
            call["gpu"] = work
            args = {"device": 0, "stream": stream, "correlation": self.correlation, "context": 1}
            self.add(cat, name, start, work["end"] - start, 0, stream, args)
        return call["end"]

    def write(self, path):
        order = self.events[:]
        self.random.shuffle(order)
        path.write_text(json.dumps({"baseTimeNanoseconds": 0, "traceEvents": order}))


def kind(work):
    if work["cat"] == "gpu_memcpy":
        return "memory"
    return "communication" if "nccl" in work["name"] else "compute"


@pytest.fixture(scope="module", params=range(4))
def case(request, tmp_path_factory, tracelake):
    directory = tmp_path_factory.mktemp(f"random{request.param}")
    trace = Trace(request.param)
    trace.write(directory / "trace.json")
    tracelake("convert", directory / "trace.json", "-o", directory / "lake", "-q")
    return trace, directory / "lake"


def moments(work):
    """The µs that the work covers, one by one."""
    return {t for w in work for t in range(w["start"], w["end"])}


def test_devices_and_overlap(case, tracelake):
    trace, lake = case
    (row,) = analyze(tracelake, lake, "devices")
    by = {k: moments([w for w in trace.gpu if kind(w) == k]) for k in ("compute", "communication", "memory")}
    busy = set().union(*by.values())
    window = max(w["end"] for w in trace.gpu) - min(w["start"] for w in trace.gpu)
    assert row["window_ns"] == window * 1000
    assert row["busy_ns"] == len(busy) * 1000
    assert row["idle_ns"] == (window - len(busy)) * 1000
    for k in by:
        assert row[f"{k}_ns"] == len(by[k]) * 1000
    assert row["exposed_communication_ns"] == len(by["communication"] - by["compute"]) * 1000
    assert row["exposed_memory_ns"] == len(by["memory"] - by["compute"] - by["communication"]) * 1000
    rows = analyze(tracelake, lake, "overlap")
    if not by["communication"]:
        assert rows == []
        return
    assert rows[0]["communication_ns"] == len(by["communication"]) * 1000
    assert rows[0]["hidden_ns"] == len(by["communication"] & by["compute"]) * 1000


def idle_gaps(works, reach):
    """Gaps between work in order of start: (gap, reason)."""
    out, end = defaultdict(int), None
    for w in sorted(works, key=lambda w: (w["start"], w["order"])):
        if end is not None and w["start"] > end:
            gap = w["start"] - end
            if w["call"]["start"] > end:
                reason = "host"
            elif reach is not None and all(t in reach for t in range(end, w["start"])):
                reason = "other_stream"
            else:
                reason = "short" if gap < 30 else "other"
            out[reason] += gap * 1000
        end = max(end or 0, w["end"])
    return dict(out)


def test_idle(case, tracelake):
    trace, lake = case
    for i, w in enumerate(trace.gpu):
        w["order"] = i
    rows = analyze(tracelake, lake, "idle")
    got = defaultdict(dict)
    for r in rows:
        got[r["stream"]][r["reason"]] = r["idle_ns"]
    want = {None: idle_gaps(trace.gpu, None)}
    for stream in {w["stream"] for w in trace.gpu}:
        mine = [w for w in trace.gpu if w["stream"] == stream]
        want[stream] = idle_gaps(mine, moments([w for w in trace.gpu if w["stream"] != stream]))
    assert {k: v for k, v in got.items() if v} == {k: v for k, v in want.items() if v}


def test_kernels(case, tracelake):
    trace, lake = case
    rows = {r["name"]: r for r in analyze(tracelake, lake, "kernels", "--set", "kinds=all")}
    names = defaultdict(list)
    for w in trace.gpu:
        names[w["name"]].append((w["end"] - w["start"]) * 1000)
    assert set(rows) == set(names)
    for name, durs in names.items():
        r = rows[name]
        assert (r["events"], r["total_ns"]) == (len(durs), sum(durs))
        assert r["min_us"] == min(durs) / 1000 and r["max_us"] == max(durs) / 1000
        assert r["p50_us"] == pytest.approx(statistics.median(durs) / 1000, abs=1e-3)
        if len(durs) > 1:
            assert r["stddev_us"] == pytest.approx(statistics.stdev(durs) / 1000, abs=1e-3)


def test_launches_and_queue(case, tracelake):
    trace, lake = case
    rows = {r["api"]: r for r in analyze(tracelake, lake, "launches")}
    for api, r in rows.items():
        calls = [c for c in trace.launches if c["api"] == api]
        linked = [c for c in calls if c["gpu"]]
        assert (r["calls"], r["launching"]) == (len(calls), len(linked))
        if linked:
            assert r["mean_delay_us"] == pytest.approx(statistics.mean(c["gpu"]["start"] - c["start"] for c in linked), abs=1e-3)
            waits = [max(c["gpu"]["start"] - c["end"], 0) for c in linked]
            assert r["mean_wait_us"] == pytest.approx(statistics.mean(waits), abs=1e-3)
            assert r["mean_queue_us"] == pytest.approx(statistics.mean(c["gpu"]["start"] - c["end"] for c in linked), abs=1e-3)
        assert r["shorter_than_call"] == sum(c["gpu"]["end"] - c["gpu"]["start"] < c["end"] - c["start"] for c in linked)
    for r in analyze(tracelake, lake, "queue"):
        works = [w for w in trace.gpu if w["stream"] == r["stream"]]
        lengths = {t: sum(w["call"]["start"] <= t < w["start"] for w in works) for w2 in works for t in (w2["call"]["start"], w2["start"])}
        assert (r["launches"], r["early"]) == (len(works), 0)
        assert r["max"] == max(lengths.values())


def test_operators(case, tracelake):
    trace, lake = case

    def gpu(calls):
        return sum((c["gpu"]["end"] - c["gpu"]["start"]) * 1000 for c in calls if c["gpu"])

    def inclusive(op):
        return gpu(op["launched"]) + sum(map(inclusive, op["inside"]))

    want = defaultdict(lambda: [0, 0, 0, 0, 0])
    for op in trace.ops:
        dur = op["end"] - op["start"]
        own = dur - sum(o["end"] - o["start"] for o in op["inside"])
        for i, v in enumerate((1, dur * 1000, own * 1000, inclusive(op), gpu(op["launched"]))):
            want[op["name"]][i] += v
    rows = analyze(tracelake, lake, "ops", "--top", "100")
    times = ("cpu_total_ms", "cpu_self_ms", "gpu_total_ms", "gpu_self_ms")
    got = {r["name"]: [r["calls"], *(round(r[c] * 1e6) for c in times)] for r in rows}
    assert got == dict(want)


@pytest.mark.parametrize("category", ["cpu_op", "Operator"])  # today's name, and that of 2021
def test_operators_do_not_own_what_follows_them(tracelake, tmp_path, category):
    """A launch behind the last operator of its thread belongs to none."""
    events = [{"ph": "X", "cat": category, "name": "aten::mm", "ts": 10, "dur": 10, "pid": 1, "tid": 1, "args": {}}]
    for i, at in enumerate((12, 30), 1):
        args = {"correlation": i, "stream": 7, "device": 0}
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at, "dur": 1, "pid": 1, "tid": 1, "args": args})
        events.append({"ph": "X", "cat": "kernel", "name": "k", "ts": 100 + 20 * i, "dur": 3 * i, "pid": 0, "tid": 7, "args": args})
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    tracelake("convert", tmp_path / "trace.json", "-o", tmp_path / "lake", "-q")
    (row,) = analyze(tracelake, tmp_path / "lake", "ops")
    assert (row["name"], row["calls"], row["gpu_events"], row["gpu_self_ms"]) == ("aten::mm", 1, 1, 0.003)


def test_iterations(case, tracelake):
    trace, lake = case
    rows = analyze(tracelake, lake, "iterations")
    assert [r["iteration"] for r in rows] == ["0", "1", "2"]
    for r, s in zip(rows, trace.steps, strict=True):
        calls = [c for c in trace.launches if s["ts"] <= c["start"] < s["ts"] + s["dur"]]
        works = [c["gpu"] for c in calls if c["gpu"]]
        assert (r["launches"], r["gpu_events"]) == (len(calls), len(works))
        assert r["gpu_busy_ms"] == pytest.approx(len(moments(works)) / 1e3)
        assert r["wall_ms"] == pytest.approx(s["dur"] / 1e3)


def test_selection(case, tracelake):
    trace, lake = case
    first = min(e["ts"] for e in trace.events)
    half = sorted(w["start"] for w in trace.gpu)[len(trace.gpu) // 2]
    rows = analyze(tracelake, lake, "devices", "--to", f"{half - first}us")
    early = [w for w in trace.gpu if w["start"] < half]
    assert [r["gpu_events"] for r in rows] == ([len(early)] if early else [])
    assert analyze(tracelake, lake, "devices", "--rank", "5") == []
    assert analyze(tracelake, lake, "kernels", "--run", "nothing") == []


def test_window(case, tracelake):
    """Calls and operators that start in the window count with all of their work, whenever it starts."""
    trace, lake = case
    first = min(e["ts"] for e in trace.events)
    half = sorted(c["start"] for c in trace.launches)[len(trace.launches) // 2]
    flags = ("--to", f"{half - first}us")

    def gpu(calls):
        return sum((c["gpu"]["end"] - c["gpu"]["start"]) * 1000 for c in calls if c["gpu"])

    def inclusive(op):
        return gpu(op["launched"]) + sum(map(inclusive, op["inside"]))

    early = [c for c in trace.launches if c["start"] < half]
    got = {r["api"]: (r["calls"], r["launching"], r["mean_delay_us"]) for r in analyze(tracelake, lake, "launches", *flags)}
    assert set(got) == {c["api"] for c in early}
    for api, (calls, launching, delay) in got.items():
        linked = [c for c in early if c["api"] == api and c["gpu"]]
        assert (calls, launching) == (sum(c["api"] == api for c in early), len(linked))
        assert delay == (pytest.approx(statistics.mean(c["gpu"]["start"] - c["start"] for c in linked), abs=1e-3) if linked else None)
    streams = [c["gpu"]["stream"] for c in early if c["gpu"]]
    rows = analyze(tracelake, lake, "queue", *flags)
    assert {r["stream"]: r["launches"] for r in rows} == {s: streams.count(s) for s in streams}
    want = defaultdict(lambda: [0, 0, 0, 0, 0])
    for op in (op for op in trace.ops if op["start"] < half):
        inside = [o for o in op["inside"] if o["start"] < half]
        dur = op["end"] - op["start"]
        own = dur - sum(o["end"] - o["start"] for o in inside)
        for i, v in enumerate((1, dur * 1000, own * 1000, inclusive(op), inclusive(op) - sum(map(inclusive, inside)))):
            want[op["name"]][i] += v
    times = ("cpu_total_ms", "cpu_self_ms", "gpu_total_ms", "gpu_self_ms")
    rows = analyze(tracelake, lake, "ops", "--top", "100", *flags)
    assert {r["name"]: [r["calls"], *(round(r[c] * 1e6) for c in times)] for r in rows} == dict(want)


def test_unchanged_in_any_duckdb(case, tracelake):
    """Every file gives the same rows in a DuckDB of the user's own."""
    _, lake = case
    con = duckdb.connect()
    con.execute((lake / "_tracelake" / "views.sql").read_text())
    seen = 0
    for file in sorted((ROOT / "analyze" / "query" / "sql").glob("*.sql")):
        mine = con.execute(file.read_text())
        names = [d[0] for d in mine.description]
        theirs = [tuple(r[n] for n in names) for r in analyze(tracelake, lake, file.stem)]
        plain = (type(None), int, float, str, bool)
        ours = [tuple(v if isinstance(v, plain) else str(v) for v in row) for row in mine.fetchall()]
        assert len(ours) == len(theirs), file.stem
        for a, b in zip(ours, theirs, strict=True):
            assert all(x == y or isinstance(x, float) and abs(x - y) < 1e-6 for x, y in zip(a, b, strict=True)), (file.stem, a, b)
        seen += 1
    assert seen >= 15
