"""Analyses of memory, copies, Python frames and missing links against plain
loops over random traces, in which as much as possible collides."""

import json
import random
from collections import defaultdict

import pytest

SEEDS = range(5)


class Trace:
    """Events in random order, as writers of traces leave them."""

    def __init__(self, seed):
        self.random, self.events = random.Random(seed), []

    def add(self, cat, name, ts, dur, pid, tid, args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args})
        return self.events[-1]

    def place(self):
        """Shuffles the events; position tells their order in the file."""
        self.random.shuffle(self.events)
        for i, e in enumerate(self.events):
            e["args"]["order"] = i

    def ask(self, tracelake, directory, name, *flags):
        lake = directory / "lake"
        if not lake.exists():
            (directory / "trace.json").write_text(json.dumps({"baseTimeNanoseconds": 0, "traceEvents": self.events}))
            tracelake("convert", directory / "trace.json", "-o", lake, "-q")
        return [json.loads(line) for line in tracelake("analyze", name, lake, "--format", "json", *flags).stdout.splitlines()]


def rounded(value, digits=3):
    return None if value is None else pytest.approx(value, abs=0.51 * 10**-digits)


# ---- memory


class Memory(Trace):
    """Allocations and frees on two GPUs and the CPU, some at one moment."""

    def __init__(self, seed):
        super().__init__(seed)
        r = self.random
        self.records = []
        held = defaultdict(list)
        for _ in range(r.randint(1, 60)):
            device = r.choice([(1, 0), (1, 1), (0, -1)])
            if held[device] and r.random() < 0.4:
                size = -held[device].pop(r.randrange(len(held[device])))
            else:
                size = r.choice([0, 512, 512, 1024, 4096])
                held[device].append(size)
            total = sum(held[device])
            args = {"Device Type": device[0], "Device Id": device[1], "Addr": r.randint(1, 9), "Bytes": size, "Total Allocated": total}
            if r.random() < 0.9:
                args["Total Reserved"] = total + r.choice([0, 2048])
            moment = 100 + r.randint(0, 50)
            self.records.append((device, moment, args))
            self.events.append(
                {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "ts": moment, "pid": 1, "tid": 1, "args": args}
            )
        self.add("cpu_op", "aten::empty", 90, 100, 1, 1, {})
        self.place()

    def expected(self, low=0, high=10**9):
        out = {}
        by = defaultdict(list)
        for device, moment, args in self.records:
            if low <= moment - 90 < high:
                by[device].append((moment, args["order"], args))
        for (kind, ordinal), rows in by.items():
            rows.sort(key=lambda r: r[:2])
            sizes = [a["Bytes"] for _, _, a in rows]
            peak = max(a["Total Allocated"] for _, _, a in rows)
            reserved = [a["Total Reserved"] for _, _, a in rows if "Total Reserved" in a]
            out[kind, ordinal] = {
                "allocations": sum(s > 0 for s in sizes),
                "frees": sum(s < 0 for s in sizes),
                "allocated_bytes": sum(s for s in sizes if s > 0),
                "peak_allocated_bytes": peak,
                "peak_at_ms": rounded(min(m for m, _, a in rows if a["Total Allocated"] == peak) / 1e3 - 0.09),
                "peak_reserved_bytes": max(reserved, default=None),
                "end_allocated_bytes": rows[-1][2]["Total Allocated"],
            }
        return out


@pytest.mark.parametrize("seed", SEEDS)
def test_memory(seed, tracelake, tmp_path):
    trace = Memory(seed)
    for flags, window in (((), ()), (("--from", "20us", "--to", "45us"), (20, 45))):
        want = trace.expected(*window)
        rows = trace.ask(tracelake, tmp_path, "memory", *flags)
        got = {(r["device_type"], r["device"]): r for r in rows}
        assert got.keys() == want.keys()
        for device, figures in want.items():
            assert {k: got[device][k] for k in figures} == figures, device


# ---- copies


class Copies(Trace):
    """Copies and sets of every kind, some without a size or a length."""

    NAMES = {
        "Memcpy HtoD (Pageable -> Device)": ("gpu_memcpy", "HtoD", "Pageable", "Device"),
        "Memcpy HtoD (Pinned -> Device)": ("gpu_memcpy", "HtoD", "Pinned", "Device"),
        "Memcpy DtoH (Device -> Pageable)": ("gpu_memcpy", "DtoH", "Device", "Pageable"),
        "Memcpy DtoD (Device -> Device)": ("gpu_memcpy", "DtoD", "Device", "Device"),
        "Memset (Device)": ("gpu_memset", None, None, "Device"),
    }

    def __init__(self, seed):
        super().__init__(seed)
        r = self.random
        for i in range(r.randint(1, 60)):
            name = r.choice(list(self.NAMES))
            args = {"device": r.choice([0, 0, 1]), "stream": r.choice([7, 20]), "correlation": i + 1}
            if r.random() < 0.8:
                args["bytes"] = r.choice([0, 4, 10**6, 3 * 10**9])
            self.add(self.NAMES[name][0], name, 100 * i, r.choice([0, 1, 7.25, 90.125]), args["device"], args["stream"], args)
        self.add("kernel", "gemm", 10**6, 5, 0, 7, {"device": 0, "stream": 7, "correlation": 1000, "bytes": 77})
        self.place()


@pytest.mark.parametrize("seed", SEEDS)
def test_copies(seed, tracelake, tmp_path):
    trace = Copies(seed)
    groups = defaultdict(list)
    for e in trace.events:
        if e["cat"] != "kernel":
            groups[(e["args"]["device"], *trace.NAMES[e["name"]])].append((e["dur"], e["args"].get("bytes")))
    rows = trace.ask(tracelake, tmp_path, "copies")
    got = {(r["device"], r["kind"], r["copy_kind"], r["from"], r["to"]): r for r in rows}
    assert got.keys() == groups.keys()
    for key, pairs in groups.items():
        durs = [d for d, _ in pairs]
        sizes = [b for _, b in pairs if b is not None]
        moved = [b for d, b in pairs if b is not None and d > 0]
        time = sum(d for d, b in pairs if b is not None)
        r = got[key]
        assert (r["events"], r["bytes"]) == (len(pairs), sum(sizes) if sizes else None), key
        want = [sum(durs), sum(durs) / len(durs), max(durs), sum(moved) / time / 1e3 if time and moved else None]
        assert [r[c] for c in ("total_us", "mean_us", "max_us", "gb_per_s")] == [rounded(w) for w in want], key
    order = [(-r["total_us"], r["device"]) for r in rows]
    assert order == sorted(order)


# ---- Python frames


class Frames(Trace):
    """Nested frames on two threads, some recursive, some as long as the frame
    around them, and launches in and between them."""

    def __init__(self, seed):
        super().__init__(seed)
        self.frames, self.launches = [], []
        for thread in (1, 2):
            at = 100
            for _ in range(self.random.randint(1, 4)):
                at = self.frame(thread, at, 0)
                if self.random.random() < 0.5:
                    at = self.launch(thread, at)
                at += self.random.randint(0, 5)
        self.place()

    def frame(self, thread, at, depth):
        r, start = self.random, at
        own = {"name": f"model.py({r.randint(1, 4)}): f", "thread": thread, "start": start, "depth": depth}
        self.frames.append(own)
        for _ in range(r.randint(0, 4)):
            at = self.frame(thread, at, depth + 1) if depth < 4 and r.random() < 0.5 else self.launch(thread, at)
            at += r.randint(0, 2)
        own["end"] = at = max(at, start + r.randint(1, 3))
        args = {"Python id": len(self.frames), "Python module id": 0}
        self.add("python_function", own["name"], start, at - start, 1, thread, args)
        return at

    def launch(self, thread, at):
        n = len(self.launches) + 1
        gpu = self.random.choice([0, 3, 11, None])
        self.launches.append((thread, at, gpu or 0))
        self.add("cuda_runtime", "cudaLaunchKernel", at, 1, 1, thread, {"correlation": n})
        if gpu is not None:
            self.add("kernel", "k", 1000 + 20 * n, gpu, 0, 7, {"device": 0, "stream": 7, "correlation": n})
        return at + 1

    def holds(self, frame, thread, moment):
        return frame["thread"] == thread and frame["start"] <= moment < frame["end"]


@pytest.mark.parametrize("seed", SEEDS)
def test_python(seed, tracelake, tmp_path):
    trace = Frames(seed)
    want = defaultdict(lambda: [0, 0, 0, 0, 0])
    for f in trace.frames:
        mine = [c for c in trace.launches if trace.holds(f, *c[:2])]
        inside = [g for g in trace.frames if g["depth"] == f["depth"] + 1 and trace.holds(f, g["thread"], g["start"])]
        own = [c for c in mine if not any(trace.holds(g, *c[:2]) for g in inside)]
        length = f["end"] - f["start"]
        values = 1, sum(c[2] for c in mine), sum(c[2] for c in own), length, length - sum(g["end"] - g["start"] for g in inside)
        for i, v in enumerate(values):
            want[f["name"]][i] += v
    rows = trace.ask(tracelake, tmp_path, "python", "--top", "100")
    columns = ("gpu_total_ms", "gpu_self_ms", "cpu_total_ms", "cpu_self_ms")
    assert {r["frame"]: [r["calls"], *(round(r[c] * 1000) for c in columns)] for r in rows} == dict(want)
    assert [r["gpu_total_ms"] for r in rows] == sorted((r["gpu_total_ms"] for r in rows), reverse=True)


# ---- GPU work without a launch or an iteration


class Links(Trace):
    """Calls of two processes whose correlation IDs collide, and iterations that
    overlap on their threads."""

    def __init__(self, seed):
        super().__init__(seed)
        r = self.random
        self.marks, self.calls, self.gpu = [], [], []
        for _ in range(r.randint(1, 12)):
            start, length, pid, tid = r.randint(100, 300), r.randint(1, 60), r.choice([1, 2]), r.choice([1, 2])
            number = r.randint(0, 5)
            name = f"stormlog.iteration/train/{number}"
            self.marks.append((self.add("user_annotation", name, start, length, pid, tid, {}), number))
        for i in range(r.randint(1, 60)):
            args = {"correlation": r.choice([0, *range(1, 40)])}
            if r.random() < 0.2:
                args["External id"] = 500 + i
            at, pid, tid = r.randint(90, 370), r.choice([1, 1, 1, 2]), r.choice([1, 2])
            self.calls.append(self.add("cuda_runtime", "cudaLaunchKernel", at, 1, pid, tid, args))
        for i in range(r.randint(1, 60)):
            args = {"device": r.choice([0, 1]), "stream": 7, "correlation": r.choice([0, *range(1, 40)])}
            if r.random() < 0.2:
                del args["correlation"]
                args["External id"] = r.choice([1, *(c["args"]["External id"] for c in self.calls if "External id" in c["args"])])
            kind, name = r.choice([("kernel", "k"), ("gpu_memset", "Memset (Device)")])
            self.gpu.append(self.add(kind, name, 1000 + 50 * i, r.choice([0, 1, 40]), args["device"], 7, args))
        self.place()

    def call_of(self, work):
        """The launch of GPU work, or why there is none: (call, status)."""
        correlation = work["args"].get("correlation", 0)
        if correlation:
            found = [c for c in self.calls if c["args"]["correlation"] == correlation]
            if len({c["pid"] for c in found}) > 1:
                return None, "ambiguous"
        else:
            found = [c for c in self.calls if c["args"].get("External id") == work["args"].get("External id", -1)]
        found.sort(key=lambda c: c["args"]["order"])
        return (found[-1], "linked") if found else (None, "unlinked")

    def reason(self, call):
        """Why a call is in no iteration, or None."""
        here = {
            number
            for m, number in self.marks
            if (m["pid"], m["tid"]) == (call["pid"], call["tid"]) and m["ts"] <= call["ts"] < m["ts"] + m["dur"]
        }
        if not here:
            return "launch_outside_iteration_range"
        return "ambiguous_iteration_range" if len(here) > 1 else None


@pytest.mark.parametrize("seed", range(12))
def test_unlinked(seed, tracelake, tmp_path):
    trace = Links(seed)
    for flags, device in (((), None), (("--device", "1"), 1)):
        want, total = defaultdict(lambda: [0, 0]), 0
        for work in trace.gpu:
            if device is not None and work["args"]["device"] != device:
                continue
            call, status = trace.call_of(work)
            if call:
                reason = trace.reason(call)
            else:
                reason = "ambiguous_launch" if status == "ambiguous" else "no_launch_record"
            total += work["dur"]
            if status != "linked" or reason:
                kind = {"kernel": "gpu_kernel"}.get(work["cat"], work["cat"])
                row = want[kind, status, reason]
                row[0] += 1
                row[1] += work["dur"]
        rows = trace.ask(tracelake, tmp_path, "unlinked", *flags)
        got = {(r["kind"], r["link_status"], r["unresolved_reason"]): (r["gpu_events"], r["total_ms"], r["share_pct"]) for r in rows}
        assert got == {key: (n, rounded(us / 1e3), rounded(100 * us / total, 2) if total else None) for key, (n, us) in want.items()}
