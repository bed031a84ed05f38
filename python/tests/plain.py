"""A straightforward reading of Chrome traces, independent of tracelake.

Times are exact: numbers are read as Decimal and turned into integer ns.
"""

import decimal
import gzip
import json
import re
from collections import Counter
from pathlib import Path

GPU = {
    "kernel": "gpu_kernel",
    "Kernel": "gpu_kernel",
    "gpu_memcpy": "gpu_memcpy",
    "Memcpy": "gpu_memcpy",
    "gpu_memset": "gpu_memset",
    "Memset": "gpu_memset",
}
RANGES = {"user_annotation", "gpu_user_annotation", "User"}


def load(path: Path):
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    doc = json.loads(raw, parse_float=decimal.Decimal)
    return (doc, {}) if isinstance(doc, list) else (doc["traceEvents"], doc)


def is_launch(cat):
    return isinstance(cat, str) and (cat in ("Runtime", "Driver") or cat.endswith(("_runtime", "_driver")))


def table_of(event):
    ph = event.get("ph")
    if ph == "X":
        cat = event.get("cat")
        if cat in GPU:
            return "gpu_events"
        if is_launch(cat):
            return "launches"
        # Until 2021 the marks of the profiler had the category of operators.
        step = cat in ("Operator", "cpu_op") and re.match("ProfilerStep#.", str(event.get("name")), re.DOTALL)
        return "ranges" if cat in RANGES or step else "cpu_events"
    if ph in ("B", "E"):
        return None
    return {"C": None, "s": "flows", "t": "flows", "f": "flows", "M": "metadata"}.get(ph, "instants")


def ns(value):
    """Integer ns of a number of us, half to even beyond a ns."""
    if isinstance(value, str):
        value = decimal.Decimal(value)
    return int((decimal.Decimal(value) * 1000).to_integral_value(decimal.ROUND_HALF_EVEN))


def integer(value):
    if isinstance(value, bool) or value is None:
        return None
    try:
        n = int(value)
    except (ValueError, TypeError):
        return None
    return n if str(value) == str(n) or not isinstance(value, str) else None


class Facts:
    """What a trace holds, counted with plain loops."""

    def __init__(self, path: Path):
        events, header = load(path)
        self.base = integer(header.get("baseTimeNanoseconds")) or 0
        self.rows = Counter()
        self.dur = Counter()
        self.start = Counter()
        launches = {}  # correlation -> last launch
        launch_pids = {}
        gpu, py = [], []
        ops_count = Counter()
        for index, e in enumerate(events):
            if not isinstance(e, dict) or not e:
                continue
            table = table_of(e)
            if table is None:
                continue
            self.rows[table] += 1
            args = e.get("args") if isinstance(e.get("args"), dict) else {}
            if e.get("ph") == "X":
                if e.get("dur") is not None:
                    self.dur[table] += ns(e["dur"])
            if e.get("ts") is not None:
                self.start[table] += ns(e["ts"]) + self.base
            if table == "launches" and integer(args.get("correlation")):
                c = integer(args["correlation"])
                launches[c] = (index, e)
                launch_pids.setdefault(c, set()).add(e.get("pid"))
            if table == "gpu_events":
                gpu.append((index, e, args))
            if table == "cpu_events":
                ext = args.get("External id", args.get("external id"))
                if integer(ext) is not None:
                    ops_count[integer(ext)] += 1
                if integer(args.get("Python id")) is not None:
                    py.append((integer(args["Python id"]), integer(args.get("Python parent id"))))
        # Join 1: GPU events with the call that launched them.
        self.linked = 0
        self.delay = 0
        for _, e, args in gpu:
            c = integer(args.get("correlation"))
            if c and c in launches and len(launch_pids[c]) == 1:
                self.linked += 1
                if "ts" in e and "ts" in launches[c][1]:
                    self.delay += ns(e["ts"]) - ns(launches[c][1]["ts"])
        # Join 2: GPU events with the operators that have their External id.
        self.with_op = sum(ops_count.get(integer(a.get("External id", a.get("external id"))), 0) for _, _, a in gpu)
        # Join 3: Python frames with their parents.
        ids = Counter(i for i, _ in py)
        self.frames = sum(ids.get(p, 0) for _, p in py if p is not None)
