"""Iterations, serving steps and stragglers of ranks that have several GPUs and
several profiles, and parts of them, against plain loops over random traces."""

import json
import random
import statistics

import pytest


def profile(r, rank, window):
    """A trace of one rank: its events, and the iterations that are in it."""
    events, steps, n, now = [], [], 0, r.randint(0, 50)
    for number in range(4):
        start, works = now, []
        for _ in range(r.randint(0, 6)):
            n, now = n + 1, now + r.randint(1, 20)
            begin, device = now + r.randint(1, 30), r.choice([0, 0, 1])
            works.append((begin, begin + r.randint(1, 60), device))
            call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "args": {"correlation": n}}
            events.append({"ph": "X", "ts": now, "dur": 1, **call})
            work = {"cat": "kernel", "name": "k", "pid": device, "tid": n, "args": {"device": device, "stream": n, "correlation": n}}
            events.append({"ph": "X", "ts": begin, "dur": works[-1][1] - begin, **work})
        end = now + r.randint(2, 50)
        name = f"execute_context_0(0)_generation_{1 + number % 2}({1 + number % 2})"
        steps.append({"name": name, "rank": rank, "window": window, "start": start, "end": end, "works": works})
        events.append({"ph": "X", "cat": "user_annotation", "name": name, "ts": start, "dur": end - start, "pid": 1, "tid": 1, "args": {}})
        now = end + r.randint(0, 5)
    r.shuffle(events)
    return events, steps


def busy(step, device=None):
    return len({t for a, b, d in step["works"] if device in (None, d) for t in range(a, b)})


@pytest.mark.parametrize("seed", range(6))
def test_random(tracelake, tmp_path, seed):
    r = random.Random(seed)
    ranks, windows, steps = r.randint(2, 3), r.randint(1, 2), []
    (tmp_path / "job").mkdir()
    for rank in range(ranks):
        for window in range(windows):
            events, own = profile(r, rank, window)
            steps += own
            head = {"baseTimeNanoseconds": (1_700_000_000 + 10 * window) * 10**9, "distributedInfo": {"rank": rank, "world_size": ranks}}
            (tmp_path / "job" / f"{rank}-{window}.json").write_text(json.dumps({**head, "traceEvents": events}))
    tracelake("convert", tmp_path / "job", "-o", tmp_path / "lake", "-q")

    def ask(name, *flags):
        return [json.loads(x) for x in tracelake("analyze", name, tmp_path / "lake", "--format", "json", *flags).stdout.splitlines()]

    for flags, device in (((), None), (("--device", "1"), 1)):
        rows = ask("iterations", *flags)
        got = sorted((x["rank"], round(x["wall_ms"] * 1e3), round(x["gpu_busy_ms"] * 1e3)) for x in rows)
        assert got == sorted((s["rank"], s["end"] - s["start"], busy(s, device)) for s in steps)

    rows = ask("iterations")
    for name in {x["iteration"] for x in rows}:
        assert ask("iterations", "--iteration", name) == [x for x in rows if x["iteration"] == name]
        assert ask("stragglers", "--iteration", name) == [x for x in ask("stragglers") if x["iteration"] == name]

    serving = ask("steps")
    for x in serving:
        assert x["mean_gpu_ms"] is not None
    for rank in range(ranks):
        mine = [s for s in steps if s["rank"] == rank]
        total = sum(x["mean_gpu_ms"] * x["steps"] for x in serving if x["rank"] == rank)
        assert total == pytest.approx(sum(map(busy, mine)) / 1e3, abs=5.1e-4 * len(mine))

    want = {}
    for window in range(windows):
        for requests in (1, 2):  # of which two steps have the same mark: one iteration with two ranges
            facts = []
            for rank in range(ranks):
                own = [s for s in steps if (s["rank"], s["window"]) == (rank, window) and f"generation_{requests}(" in s["name"]]
                wall = max(s["end"] for s in own) - min(s["start"] for s in own)
                gap = max(wall - busy({"works": [w for s in own for w in s["works"]]}), 0)
                facts.append((wall, -rank, gap))
            slow = max(facts)
            gap = slow[2] - statistics.median(f[2] for f in facts)
            want[window + 1, requests] = (-slow[1], slow[0], statistics.median(f[0] for f in facts), gap)
    rows = ask("stragglers")
    got = {(x["nth_trace"], int(x["iteration"].split("generation_")[1][0])): x for x in rows}
    assert len(got) == len(rows) and got.keys() == want.keys()
    for key, (rank, *times) in want.items():
        assert got[key]["straggler"] == rank and got[key]["ranks"] == ranks
        assert [got[key][c] * 1e3 for c in ("wall_ms", "median_wall_ms", "extra_gap_ms")] == pytest.approx(times, abs=0.6)


def test_a_mark_inside_another_is_no_step_on_its_own(tracelake, tmp_path):
    outer, inner = "execute_context_0(0)_generation_4(4)", "step[DECODE bs=4]"
    events = [
        {"ph": "X", "cat": "user_annotation", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1, "args": {}}
        for name, ts, dur in ((outer, 0, 100), (inner, 10, 50))
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"baseTimeNanoseconds": 0, "traceEvents": events}))
    tracelake("convert", tmp_path / "trace.json", "-o", tmp_path / "lake", "-q")
    query = "SELECT iteration_id FROM ranges WHERE iteration_id IS NOT NULL ORDER BY start_ns"
    ids = tracelake("sql", tmp_path / "lake", query, "--format", "csv").stdout.splitlines()[1:]
    assert len(ids) == 2
    steps = [tracelake("analyze", "steps", tmp_path / "lake", "--format", "json", "--iteration", x.strip('"')).stdout for x in ids]
    assert [len(x.splitlines()) for x in steps] == [1, 0]
    assert tracelake("analyze", "steps", tmp_path / "lake", "--format", "json", "--from", "5us").stdout == ""
