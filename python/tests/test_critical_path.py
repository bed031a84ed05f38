"""The critical path: by hand, and against a walk with plain loops."""

import json
import random
import sqlite3
from collections import defaultdict

import pytest


def event(cat, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


def answer(tracelake, directory, events, *flags):
    (directory / "trace.json").write_text(json.dumps({"baseTimeNanoseconds": 0, "traceEvents": events}))
    tracelake("convert", directory / "trace.json", "-o", directory / "lake", "-q")
    out = tracelake("analyze", "critical-path", directory / "lake", "--format", "json", "--top", "1000", *flags).stdout
    rows = defaultdict(dict)
    for r in map(json.loads, out.splitlines()):
        rows[r["iteration"]][r["what"], r["name"]] = (r["steps"], round(r["total_ms"] * 1e3))
        rows[r["iteration"]]["path"] = round(r["path_ms"] * 1e3)
        rows[r["iteration"]]["waits"] = r["waits"]
    return dict(rows)


def kernel(name, ts, dur, stream, correlation, device=0):
    return event("kernel", name, ts, dur, stream, device=device, stream=stream, context=1, correlation=correlation)


def test_golden(tracelake, tmp_path):
    events = [
        event("user_annotation", "ProfilerStep#1", 0, 200),
        event("cuda_runtime", "cudaLaunchKernel", 10, 5, correlation=1),
        kernel("a", 20, 50, 7, 1),  # waits for the end of its launch
        event("cuda_runtime", "cudaEventRecord", 16, 1, correlation=2),
        event("cuda_runtime", "cudaStreamWaitEvent", 18, 1, correlation=3),
        event("cuda_sync", "Stream Wait Event", 18, 1, 8, stream=8, correlation=3, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2),
        event("cuda_runtime", "cudaLaunchKernel", 30, 10, correlation=4),
        kernel("b", 73, 30, 8, 4),  # waits for a, by the event
        event("cuda_runtime", "cudaLaunchKernel", 41, 4, correlation=5),
        kernel("c", 42, 8, 9, 5),  # on no path
        event("cuda_runtime", "cudaDeviceSynchronize", 50, 60, correlation=6),  # until b
    ]
    want = {
        ("host", None): (2, 10 + 90),  # before the first call; behind the last
        ("call", "cudaLaunchKernel"): (1, 5),
        ("launch", "a"): (1, 5),
        ("compute", "a"): (1, 50),
        ("wait", "b"): (1, 3),
        ("compute", "b"): (1, 30),
        ("sync", "cudaDeviceSynchronize"): (1, 7),
        "path": 200,
        "waits": "recorded",
    }
    assert answer(tracelake, tmp_path, events) == {"1": want}


def test_without_marks(tracelake, tmp_path):
    events = [event("cuda_runtime", "cudaLaunchKernel", 10, 5, correlation=1), kernel("a", 12, 50, 7, 1)]
    want = {("launch", "a"): (1, 2), ("compute", "a"): (1, 50), "path": 52, "waits": "inferred"}
    assert answer(tracelake, tmp_path, events) == {None: want}
    assert answer(tracelake, tmp_path, events, "--iteration", "1") == {}


def walk(calls, works, since, until, tid, own):
    """The path of one iteration: time by what and name."""
    spent = defaultdict(lambda: [0, 0])

    def add(what, name, start, end):
        length = min(end, until) - max(start, since)
        if length > 0:
            spent[what, name][0] += 1
            spent[what, name][1] += length

    last = max((w for w in works if w["launch"] in own), key=lambda w: w["end"], default=None)
    until = max(until, last["end"] if last else 0)
    if last and last["end"] == until:
        at = ("gpu", last)
    else:
        done = [c for c in calls if c["tid"] == tid and c["end"] <= until]
        at = ("done", max(done, key=lambda c: c["end"])) if done else None
        add("host", None, at[1]["end"] if at else since, until)
    while at:
        kind, n = at
        if kind == "gpu":
            add("compute", n["name"], n["start"], n["end"])
            call = n["launch"]
            early = call["end"] > n["start"]
            options = [(call["start"] if early else call["end"], "launch", ("entered" if early else "done", call))]
            order = sorted((w for w in works if (w["device"], w["stream"]) == (n["device"], n["stream"])), key=lambda w: w["start"])
            place = order.index(n)
            if place:
                options.append((order[place - 1]["end"], "stream", ("gpu", order[place - 1])))
            options = [o for o in options if o[0] <= n["start"]]
            if not options:
                add("host", None, since, n["start"])
                return spent, until
            arrival, via, at = max(options, key=lambda o: o[:2])
            add(via, n["name"], arrival, n["start"])
            continue
        if kind == "done" and n["sync"]:
            device, stream = n["of"]  # as far as the record tells
            ended = [w for w in works if w["end"] <= n["end"] and device in (None, w["device"]) and stream in (None, w["stream"])]
            w = max(ended, key=lambda w: w["end"], default=None)
            if w and w["end"] > n["start"]:
                add("sync", n["name"], w["end"], n["end"])
                at = ("gpu", w)
                continue
        if kind == "done":
            add("call", n["name"], n["start"], n["end"])
        before = [c for c in calls if c["tid"] == n["tid"] and c["end"] <= n["start"]]
        at = ("done", max(before, key=lambda c: c["end"])) if before else None
        add("host", None, at[1]["end"] if at else since, n["start"])
    return spent, until


@pytest.mark.parametrize("seed", range(16))
def test_random(tracelake, tmp_path, seed):
    rng = random.Random(seed)
    used = set()

    def free(moment):  # moments that differ, so that no order is a matter of taste
        while moment in used:
            moment += 1
        used.add(moment)
        return moment

    events, calls, works, now = [], [], [], {1: 5, 2: 9}
    for correlation in range(1, 90):
        tid = rng.choice([1, 1, 2])
        start = free(now[tid] + rng.randint(1, 12))
        end = free(start + rng.randint(1, 12))
        now[tid] = end
        sync = rng.random() < 0.15
        name = "cudaDeviceSynchronize" if sync else "cudaLaunchKernel"
        call = {"tid": tid, "start": start, "end": end, "sync": sync, "name": name, "of": (None, None)}
        calls.append(call)
        if sync and seed > 3 and rng.random() < 0.7:
            call["of"] = of = (rng.choice([0, 1]), rng.choice([7, 8, None]))
            kind = "Context Sync" if of[1] is None else "Stream Sync"
            more = {"device": of[0], "stream": -1 if of[1] is None else of[1], "correlation": correlation, "cuda_sync_kind": kind}
            events.append(event("cuda_sync", kind, start, end - start, 7, **more))
        events.append(event("cuda_runtime", name, start, end - start, tid, correlation=correlation))
        if not sync:
            stream, device = rng.choice([7, 8]), rng.choice([0, 1]) if seed % 2 else 0
            busy = max((w["end"] for w in works if (w["device"], w["stream"]) == (device, stream)), default=0)
            begin = free(max(start + 1, busy) + rng.randint(0, 15))
            finish = free(begin + rng.randint(1, 25))
            works.append({"start": begin, "end": finish, "device": device, "stream": stream, "launch": call, "name": f"k{correlation % 4}"})
            events.append(kernel(works[-1]["name"], begin, finish - begin, stream, correlation, device))
    middle = free(max(now.values()) // 2)
    marks = [("1", 0, middle), ("2", middle, max(now.values()) + 5)]
    for name, start, end in marks:
        events.append(event("user_annotation", f"ProfilerStep#{name}", start, end - start))
    rng.shuffle(events)
    rows = answer(tracelake, tmp_path, events)
    assert set(rows) == {"1", "2"}
    launches = tracelake("sql", tmp_path / "lake", "SELECT start_ns, iteration_id FROM launches", "--format", "csv").stdout
    own = defaultdict(set)
    for line in launches.splitlines()[1:]:
        start, iteration = line.split(",")
        own[iteration].add(int(start) // 1000)
    for name, since, until in marks:
        mine = [c for c in calls if c["start"] in own[name]]
        spent, end = walk(calls, works, since, until, 1, mine)
        got = rows[name]
        assert got.pop("path") == end - since
        assert got.pop("waits") == ("recorded" if any(e["cat"] == "cuda_sync" for e in events) else "inferred")
        assert got == {k: tuple(v) for k, v in spent.items()}
        assert sum(ns for _, ns in got.values()) == end - since


def test_calls_of_no_length_at_one_moment(tracelake, tmp_path):
    """Neither ended before the other started, and the path goes on behind both."""
    events = [
        event("user_annotation", "ProfilerStep#1", 0, 100),
        event("cuda_runtime", "cudaMalloc", 10, 20, correlation=1),
        event("cuda_runtime", "cudaEventQuery", 40, 0, correlation=2),
        event("cuda_runtime", "cudaEventQuery", 40, 0, correlation=3),
        event("cuda_runtime", "cudaLaunchKernel", 50, 5, correlation=4),
        kernel("a", 60, 50, 7, 4),
    ]
    want = {
        ("host", None): (3, 10 + 10 + 10),  # before the first call, and up to the second and the last
        ("call", "cudaMalloc"): (1, 20),
        ("call", "cudaLaunchKernel"): (1, 5),
        ("launch", "a"): (1, 5),
        ("compute", "a"): (1, 50),
        "path": 110,
        "waits": "inferred",
    }
    assert answer(tracelake, tmp_path, events) == {"1": want}


def test_streams_of_another_device(tracelake, tmp_path):
    """Both devices have a stream 7, of which one is waited for."""
    events = [
        event("cuda_runtime", "cudaLaunchKernel", 0, 5, correlation=1),
        kernel("mine", 10, 90, 7, 1),
        event("cuda_runtime", "cudaLaunchKernel", 0, 5, tid=2, correlation=2),
        kernel("other", 11, 91, 7, 2, device=1),
        event("cuda_runtime", "cudaStreamSynchronize", 6, 99, correlation=3),
        event("cuda_sync", "Stream Sync", 6, 95, 7, stream=7, device=0, correlation=3),
        event("cuda_runtime", "cudaEventRecord", 106, 1, correlation=4),
        event("cuda_runtime", "cudaStreamWaitEvent", 108, 1, correlation=5),
        event(
            "cuda_sync",
            "Stream Wait Event",
            108,
            1,
            8,
            stream=8,
            device=0,
            correlation=5,
            wait_on_stream=7,
            wait_on_cuda_event_record_corr_id=4,
        ),
        event("cuda_runtime", "cudaLaunchKernel", 110, 5, correlation=6),
        kernel("last", 120, 30, 8, 6),
    ]
    want = {
        ("call", "cudaLaunchKernel"): (2, 5 + 5),
        ("launch", "mine"): (1, 5),
        ("compute", "mine"): (1, 90),
        ("sync", "cudaStreamSynchronize"): (1, 5),
        ("host", None): (3, 1 + 1 + 1),
        ("call", "cudaEventRecord"): (1, 1),
        ("call", "cudaStreamWaitEvent"): (1, 1),
        ("launch", "last"): (1, 5),
        ("compute", "last"): (1, 30),
        "path": 150,
        "waits": "recorded",
    }
    assert answer(tracelake, tmp_path, events) == {None: want}


def test_processes(tracelake, tmp_path):
    """Two processes have the same correlation IDs, devices and streams."""
    db = sqlite3.connect(tmp_path / "report.sqlite")
    names = {1: "cudaLaunchKernel_v7000", 2: "cudaStreamSynchronize_v3020", 11: "mine", 12: "other", 13: "last"}
    gpu = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
    tables = {
        "StringIds": ("id", "value"),
        "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end", "globalTid", "correlationId", "nameId"),
        "CUPTI_ACTIVITY_KIND_KERNEL": (*gpu, "demangledName", "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (*gpu, "syncType", "eventId"),
    }
    for table, columns in tables.items():
        db.execute(f"create table {table} ({', '.join(c + (' text' if c == 'value' else ' integer') for c in columns)})")

    def put(table, *values):
        db.execute(f"insert into {table} values ({', '.join('?' * len(values))})", values)

    for row in names.items():
        put("StringIds", *row)
    calls = [(0, 5, 1, 1, 1), (0, 5, 2, 1, 1), (6, 105, 1, 2, 2), (6, 107, 2, 2, 2), (110, 115, 1, 3, 1)]
    for start, end, process, correlation, name in calls:
        put("CUPTI_ACTIVITY_KIND_RUNTIME", start * 1000, end * 1000, process << 24 | 1, correlation, name)
    for start, end, process, correlation, name in [(10, 100, 1, 1, 11), (11, 102, 2, 1, 12), (120, 150, 1, 3, 13)]:
        put("CUPTI_ACTIVITY_KIND_KERNEL", start * 1000, end * 1000, 0, 1, 7, correlation, process << 24, name, name, *[1] * 6)
    for process in (1, 2):
        put("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 6000, 100000, 0, 1, 7, 2, process << 24, 3, 0)
    db.commit()
    tracelake("convert", tmp_path / "report.sqlite", "-o", tmp_path / "lake", "-q")
    out = tracelake("analyze", "critical-path", tmp_path / "lake", "--format", "json").stdout
    got = {(r["what"], r["name"]): round(r["total_ms"] * 1e3) for r in map(json.loads, out.splitlines())}
    assert got == {
        ("call", "cudaLaunchKernel"): 5 + 5,
        ("launch", "mine"): 5,
        ("compute", "mine"): 90,
        ("sync", "cudaStreamSynchronize"): 5,
        ("host", None): 5,
        ("launch", "last"): 5,
        ("compute", "last"): 30,
    }


def test_part_of_a_trace(tracelake, tmp_path):
    """Without iterations the path is that of what is selected."""
    events = []
    for i in range(3):
        events += [event("cuda_runtime", "cudaLaunchKernel", 100 * i, 5, correlation=i + 1), kernel(f"k{i}", 100 * i + 10, 50, 7, i + 1)]
    rows = answer(tracelake, tmp_path, events, "--from", "100us", "--to", "200us")[None]
    want = {("call", "cudaLaunchKernel"): (1, 5), ("launch", "k1"): (1, 5), ("compute", "k1"): (1, 50), "path": 60, "waits": "inferred"}
    assert rows == want
