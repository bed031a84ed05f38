"""docs/cookbook.md: the three dialects give one answer, and that of the analyses."""

import json
import re

import duckdb
import pandas as pd
import pytest
from conftest import ROOT

BLOCKS = re.findall(r"```(sql|python) (\w+) ?(\w*)\n(.*?)```", (ROOT / "docs" / "cookbook.md").read_text(), re.S)
NAMES = [name for language, name, _, _ in BLOCKS if language == "sql"]


@pytest.fixture(scope="module")
def lake(tracelake, tmp_path_factory):
    path = tmp_path_factory.mktemp("cookbook") / "lake"
    tracelake("convert", ROOT / "testdata" / "demo", "-o", path, "-q", ok=(0, 3))
    return path


def plain(v):
    return None if pd.isna(v) else v if isinstance(v, str) else int(v)


def block(language, name, dialect=""):
    (text,) = [t for lang, n, d, t in BLOCKS if (lang, n, d) == (language, name, dialect)]
    return text


def sql(lake, name):
    con = duckdb.connect()
    con.execute((lake / "_tracelake" / "views.sql").read_text())
    answer = con.execute(block("sql", name))
    return [d[0] for d in answer.description], [tuple(map(plain, row)) for row in answer.fetchall()]


def python(lake, name, dialect):
    scope = {"lake": str(lake)}
    exec(block("python", "setup"), scope)
    exec(block("python", name, dialect), scope)
    out = scope["out"]
    if dialect == "pandas":
        return list(out.columns), [tuple(map(plain, row)) for row in out.itertuples(index=False)]
    return out.columns, [tuple(map(plain, row)) for row in out.rows()]


@pytest.mark.parametrize("name", NAMES)
def test_dialects_agree(lake, name):
    columns, rows = sql(lake, name)
    assert rows
    for dialect in ("pandas", "polars"):
        assert python(lake, name, dialect) == (columns, rows), dialect


def test_analyses_agree(lake, tracelake):
    def analyze(name, *flags):
        out = tracelake("analyze", name, lake, "--format", "json", *flags).stdout
        return [json.loads(line) for line in out.splitlines()]

    assert len(NAMES) >= 17
    rows = analyze("devices")
    assert {(r["trace_id"], r["process"], r["device"], r["busy_ns"]) for r in rows} == set(sql(lake, "busy")[1])
    calls = {r["api"]: r["calls"] for r in analyze("launches")}
    assert calls == {api: n for api, n, _ in sql(lake, "calls")[1]}
    trust = {r["trace_id"]: r["linked_pct"] for r in analyze("trust")}
    for trace, events, linked in sql(lake, "linked")[1]:
        assert trust[trace] == pytest.approx(100 * linked / events, abs=0.01)
    kernels = {r["name"]: (r["events"], r["total_ns"]) for r in analyze("kernels", "--top", "1000")}
    for name, events, total in sql(lake, "kernels")[1]:
        assert kernels[name] == (events, total)
    reasons = {}
    for r in analyze("unlinked"):
        reasons[r["unresolved_reason"]] = reasons.get(r["unresolved_reason"], 0) + r["gpu_events"]
    assert reasons == {reason: events for reason, events, _ in sql(lake, "unlinked")[1]}
    longest = {}
    for r in analyze("idle"):
        if r["stream"] is None and r["gaps"]:
            key = r["trace_id"], r["device"]
            longest[key] = max(longest.get(key, 0), round(r["max_us"] * 1000))
    assert longest == {(trace, device): ns for trace, device, ns, _ in sql(lake, "gaps")[1]}
    peaks = {(r["trace_id"], r["device"]): r["peak_allocated_bytes"] for r in analyze("memory") if r["peak_allocated_bytes"]}
    assert peaks.items() >= {(trace, device): bytes for trace, device, bytes, _ in sql(lake, "memory_peaks")[1]}.items()
    shared = {(r["run"], r["iteration"]) for r in analyze("stragglers")}
    assert shared == {(run, iteration) for run, iteration, _, _ in sql(lake, "slow_ranks")[1]}
    walls = {(r["trace_id"], r["iteration"], r["wall_ms"]) for r in analyze("iterations")}
    assert walls >= {(trace, iteration, round(ns / 1e6, 3)) for trace, iteration, _, ns in sql(lake, "slow_iterations")[1]}
