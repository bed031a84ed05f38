"""Every analysis over real reports of Nsight Systems, against plain loops over
their SQLite files."""

import bisect
import json
import re
import sqlite3
from collections import defaultdict

import pytest
from conftest import ROOT

REPORTS = (
    "nsys-ai_h100_2gpu_1s.sqlite",
    "nsys-ai_healthy_1pct.sqlite",
    "nsys-ai_mfu_2gpu_before.sqlite",
    "synthetic/e2021.sqlite",
    "synthetic/e2023_mixed.sqlite",
    "synthetic/e2026.sqlite",
)
# What no report of Nsight Systems, or none of these, has.
LACKING = {"fx_to_kernels", "memory", "python", "steps", "stragglers"}


class Report:
    """GPU work and calls of a report: (process, device, start, end, name, correlation)."""

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.texts = dict(self.db.execute("select id, value from StringIds"))
        self.tables = {name for (name,) in self.db.execute("select name from sqlite_master")}
        self.kernels = self.read("KERNEL", "demangledName")
        self.copies = self.read("MEMCPY", "bytes") + self.read("MEMSET", "bytes")
        self.calls = [
            (tid >> 24, correlation, re.sub(r"_v\d+$|_ptsz$", "", self.texts[name]), end - start)
            for tid, correlation, name, start, end in self.rows("RUNTIME", "globalTid", "correlationId", "nameId", "start", "end")
        ]

    def rows(self, table, *columns):
        table = f"CUPTI_ACTIVITY_KIND_{table}"
        if table not in self.tables:
            return []
        known = {row[1] for row in self.db.execute(f"pragma table_info({table})")}
        return self.db.execute(f"select {', '.join(c if c in known else f'null as {c}' for c in columns)} from {table}")

    def read(self, table, what):
        rows = self.rows(table, "globalPid", "deviceId", "start", "end", what, "correlationId")
        return [(p, d, s, e, self.texts[w] if what == "demangledName" else w, c) for p, d, s, e, w, c in rows]


def length(spans):
    total, reach = 0, None
    for start, end in sorted(spans):
        total += max(end - max(start, reach if reach is not None else start), 0)
        reach = max(end, reach or end)
    return total


@pytest.fixture(scope="module", params=REPORTS, ids=lambda p: p.rpartition("/")[2])
def report(request, shared, tracelake, tmp_path_factory):
    path = shared / "traces" / "nsys" / request.param
    lake = tmp_path_factory.mktemp("nsight") / "lake"
    tracelake("convert", path, "-o", lake, "-q")

    def ask(name, *flags):
        p = tracelake("analyze", name, lake, "--format", "json", *flags)
        return [json.loads(line) for line in p.stdout.splitlines()], p.stderr

    return Report(path), ask


def test_every_analysis_answers(report):
    _, ask = report
    for file in (ROOT / "analyze" / "query" / "sql").glob("*.sql"):
        rows, said = ask(file.stem)
        assert rows or "no rows" in said and file.stem in said, file.stem
        if file.stem in LACKING:
            assert rows == [], file.stem
    for name in ("summary", "trust", "devices", "kernels", "idle", "launches", "queue", "kernel-sequences"):
        assert ask(name)[0], name


def test_devices(report):
    plain, ask = report
    work = defaultdict(list)
    for process, device, start, end, _, _ in plain.kernels + plain.copies:
        work[process, device].append((start, end))
    rows = {(r["process"], r["device"]): r for r in ask("devices")[0]}
    for key, spans in work.items():
        r = rows[key]
        whole = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE" in plain.tables
        if not whole:
            window = max(e for _, e in spans) - min(s for s, _ in spans)
            assert (r["gpu_events"], r["busy_ns"], r["window_ns"]) == (len(spans), length(spans), window)
        moved = [(s, e) for p, d, s, e, _, _ in plain.copies if (p, d) == key]
        assert r["memory_ns"] == length(moved)
        talk = [(s, e) for p, d, s, e, name, _ in plain.kernels if (p, d) == key and "nccl" in name]
        assert r["communication_ns"] == length(talk)
    idle = defaultdict(int)
    for r in ask("idle")[0]:
        if r["stream"] is None:
            idle[r["process"], r["device"]] += r["idle_ns"]
    assert dict(idle) == {k: r["idle_ns"] for k, r in rows.items() if r["idle_ns"]}


def test_kernels(report):
    plain, ask = report
    want = defaultdict(list)
    for _, _, start, end, name, _ in plain.kernels:
        want[name].append(end - start)
    rows = {r["name"]: r for r in ask("kernels", "--top", "1000000")[0]}
    assert {n: (rows[n]["events"], rows[n]["total_ns"]) for n in want} == {n: (len(v), sum(v)) for n, v in want.items()}


def test_launches(report):
    plain, ask = report
    linked = {(p and p >> 24, c) for p, _, _, _, _, c in plain.kernels + plain.copies}
    calls, launching = defaultdict(list), defaultdict(int)
    for process, correlation, api, took in plain.calls:
        calls[api].append(took)
        launching[api] += (process, correlation) in linked or (None, correlation) in linked
    rows = {r["api"]: r for r in ask("launches")[0]}
    assert {n: (r["calls"], round(r["total_ms"] * 1e6)) for n, r in rows.items()} == {
        n: (len(v), pytest.approx(sum(v), abs=500)) for n, v in calls.items()
    }
    assert {n: r["launching"] for n, r in rows.items() if "Graph" not in n} == {n: launching[n] for n in rows if "Graph" not in n}


def test_ranges_stand_for_operators(report):
    """GPU time by the innermost NVTX range around the launch, on the same thread."""
    plain, ask = report
    if "NVTX_EVENTS" not in plain.tables:
        assert ask("ops")[0] == []
        return
    rows = ask("ops", "--top", "1000000")[0]
    assert sum(r["calls"] for r in rows) > 100
    assert not any(", seq = " in r["name"] for r in rows)
    known = {row[1] for row in plain.db.execute("pragma table_info(NVTX_EVENTS)")}
    text = "textId" if "textId" in known else "null"
    ranges = defaultdict(list)
    for start, end, tid, plain_text, number in plain.db.execute(
        f"select start, end, globalTid, text, {text} from NVTX_EVENTS where eventType = 59 and end > start"
    ):
        name = re.sub(r", (seq|op_id|sizes|input_op_ids) = .*", "", plain_text or plain.texts[number])
        ranges[tid].append((start, end, name))
    gpu = defaultdict(int)
    for p, _, start, end, _, c in plain.kernels + plain.copies:
        gpu[p and p >> 24, c] += end - start
    for spans in ranges.values():
        spans.sort(key=lambda r: (r[0], -r[1]))
    want = defaultdict(int)
    for start, tid, c in plain.rows("RUNTIME", "start", "globalTid", "correlationId"):
        took = gpu.get((tid >> 24, c), 0)
        if took:
            spans = ranges.get(tid, [])
            before = reversed(spans[: bisect.bisect_right(spans, start, key=lambda r: r[0])])
            around = next((r for r in before if start < r[1]), None)
            if around:
                want[around[2]] += took
    got = {r["name"]: round(r["gpu_self_ms"] * 1e6) for r in rows if r["gpu_self_ms"]}
    whole = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE" in plain.tables
    assert got.keys() >= want.keys() if whole else got.keys() == want.keys()
    assert got == {n: pytest.approx(v, abs=500) for n, v in want.items()} or whole
