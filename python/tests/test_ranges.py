"""Ranges on the GPU: by hand, and against plain loops over random traces."""

import json
import random
from collections import defaultdict

import pytest


def event(cat, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


def answer(tracelake, directory, events, *flags):
    (directory / "trace.json").write_text(json.dumps({"baseTimeNanoseconds": 0, "traceEvents": events}))
    tracelake("convert", directory / "trace.json", "-o", directory / "lake", "-q", "--force")
    out = tracelake("analyze", "ranges", directory / "lake", "--format", "json", "--top", "1000", *flags).stdout
    return {r["name"]: r for r in map(json.loads, out.splitlines())}


def launch(correlation, ts, gpu, dur, stream=7, tid=1):
    yield event("cuda_runtime", "cudaLaunchKernel", ts, 2, tid, correlation=correlation)
    yield event("kernel", "k", gpu, dur, stream, device=0, stream=stream, context=1, correlation=correlation)


def test_golden(tracelake, tmp_path):
    events = [
        event("user_annotation", "outer", 0, 100),
        event("user_annotation", "inner", 10, 20),
        event("user_annotation", "inner", 40, 20),
        event("user_annotation", "empty", 70, 5),
        event("user_annotation", "other thread", 0, 100, tid=2),
        *launch(1, 5, 20, 10),  # outer
        *launch(2, 12, 40, 10),  # inner and outer
        *launch(3, 29, 45, 15, stream=8),  # starts in inner, ends behind it
        *launch(4, 30, 90, 5),  # at the end of inner: outer only
        *launch(5, 45, 200, 10),  # the second inner
        *launch(6, 50, 300, 30, tid=2),
    ]
    rows = answer(tracelake, tmp_path, events)
    times = ("ranges", "projected", "range_ms", "projected_ms", "busy_ms", "gpu_ms", "gpu_events")
    assert {name: tuple(r[c] for c in times) for name, r in rows.items()} == {
        "outer": (1, 1, 0.1, 0.19, 0.045, 0.05, 5),  # 20..210; 20..30, 40..60, 90..95, 200..210
        "inner": (2, 2, 0.04, 0.03, 0.03, 0.035, 3),  # 40..60 and 200..210
        "empty": (1, 0, 0.005, 0, 0, 0, 0),
        "other thread": (1, 1, 0.1, 0.03, 0.03, 0.03, 1),
    }
    inner = rows["inner"]
    assert [inner[c] for c in ("mean_us", "p50_us", "min_us", "max_us", "busy_pct")] == [15, 15, 10, 20, 100]
    assert rows["empty"]["mean_us"] is None


@pytest.mark.parametrize("seed", range(6))
def test_random(tracelake, tmp_path, seed):
    rng = random.Random(seed)
    events, calls, marks = [], [], []
    for correlation in range(1, 60):
        ts, tid = rng.randint(0, 300), rng.choice([1, 2])
        gpu, dur, stream = ts + rng.randint(0, 90), rng.randint(0, 20), rng.choice([7, 8])
        calls.append((ts, tid, gpu, gpu + dur))
        events += launch(correlation, ts, gpu, dur, stream, tid)
    for _ in range(25):
        ts, dur, tid, name = rng.randint(0, 300), rng.randint(1, 80), rng.choice([1, 2]), rng.choice("abcde")
        marks.append((name, ts, ts + dur, tid))
        events.append(event("user_annotation", name, ts, dur, tid))
    rng.shuffle(events)
    first = min(e["ts"] for e in events)
    for to in (1000, 100):  # ranges that start behind it do not count, work does
        check(tracelake, tmp_path, events, [m for m in marks if m[1] - first < to], calls, "--to", f"{to}us")


def check(tracelake, directory, events, marks, calls, *flags):
    want = defaultdict(lambda: [0, 0, 0, 0, 0])
    for name, start, end, tid in marks:
        mine = [(s, e) for ts, t, s, e in calls if t == tid and start <= ts < end]
        w = want[name]
        w[0] += 1
        if mine:
            w[1] += 1
            w[2] += max(e for _, e in mine) - min(s for s, _ in mine)
            w[3] += len({x for s, e in mine for x in range(s, e)})
            w[4] += len(mine)
    rows = answer(tracelake, directory, events, *flags)
    columns = ("projected_ms", "busy_ms")
    got = {n: [r["ranges"], r["projected"], *(round(r[c] * 1e3) for c in columns), r["gpu_events"]] for n, r in rows.items()}
    assert got == dict(want)
