"""What HolisticTraceAnalysis makes of a trace, in plain loops.

It rounds times to whole µs, takes everything with a stream for GPU work, and
leaves out what the last ProfilerStep launched. A copy of a trace with times
rounded like that and without what is no GPU work lets both sides be compared
number by number.
"""

import gzip
import json
import math
from collections import Counter
from pathlib import Path

GPU = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}


def load(path: Path):
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    doc = json.loads(raw)
    return {"traceEvents": doc} if isinstance(doc, list) else doc


def argument(event, name):
    args = event.get("args")
    return args.get(name, -1) if isinstance(args, dict) else -1


def stream(event):
    try:
        return int(argument(event, "stream"))
    except ValueError:
        return -1


def is_call(event):
    cat = event.get("cat")
    return isinstance(cat, str) and (cat in ("Runtime", "Driver") or cat.endswith(("_runtime", "_driver")))


class Seen:
    """The rows of a trace that the package takes for GPU work."""

    def __init__(self, events):
        rows = [e for e in events if e.get("dur") is not None and e.get("cat") not in (None, "Trace")]
        self.rounded = any(isinstance(e.get("ts"), float) for e in events)
        on_gpu = [e for e in rows if stream(e) >= 0 and argument(e, "correlation") >= 0]
        steps = {e["name"] for e in rows if "ProfilerStep" in str(e["name"])}
        self.steps = len(steps)
        if self.steps < 2:
            self.kept = [e for e in rows if stream(e) != -1]
        else:
            # Only work that something before the last step launched. A call
            # with two rows counts its work twice.
            host = [e for e in rows if not (stream(e) >= 0 and argument(e, "correlation") >= 0)]
            last = max(self.start(e) for e in host if e["name"] in steps)
            host = [e for e in host if self.start(e) < last]
            launched = Counter(argument(e, "correlation") for e in host)
            self.kept = [e for e in on_gpu for _ in range(launched[argument(e, "correlation")])]
            self.kept += [e for e in host if stream(e) != -1]
        self.work = [e for e in self.kept if e["cat"] in GPU]
        self.rows = len(self.kept)
        self.strange = len(self.kept) - len(self.work)  # rows that are no GPU work
        self.missing = sum(e["cat"] in GPU for e in rows) - len(self.work)
        self.negative = sum(self.end(e) < self.start(e) for e in self.kept)  # lengths below 0 once rounded

    def start(self, event):
        return math.ceil(event["ts"]) if self.rounded else event["ts"]

    def end(self, event):
        return math.floor(event["ts"] + event["dur"]) if self.rounded else event["ts"] + event["dur"]


def write_copy(doc, name, path: Path, only=None):
    """Writes GPU work (all, or only some of it) and calls, in whole µs."""
    wanted = None if only is None else {id(e) for e in only}
    # The package takes row 0 for "not in the trace"; it must be no call.
    meta = [{"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "python"}}]
    out = []
    for e in doc["traceEvents"]:
        if e.get("ph") == "M":
            meta.append(e)
        elif e.get("ph") == "X" and (is_call(e) or e.get("cat") in GPU and (wanted is None or id(e) in wanted)):
            start = math.ceil(float(e["ts"]))
            end = math.floor(float(e["ts"]) + float(e["dur"]))
            out.append({**e, "ts": start, "dur": max(end - start, 0)})
    head = {k: v for k, v in doc.items() if k not in ("traceEvents", "baseTimeNanoseconds")}
    path.write_text(json.dumps({**head, "copy_of": name, "traceEvents": meta + out}))
