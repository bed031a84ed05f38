"""Answers of the stormlog package for the live comparison.

Reads one request per line from stdin: {"path", "details", "device_uuids",
"by_pid", "attachment"}. Writes JSON lines to stdout: for each request the rows
of the loaded trace, then for each detail a row "detail" and the rows of the
capture, and at last a row "end". A refusal is one row "error" in place of what
it prevented.
"""

import gc
import json
import sys
from pathlib import Path

from stormlog.infer.correlation_capture import TraceAttachment
from stormlog.infer.trace_kineto import (
    capture_trace,
    link_gpu_event,
    load_kineto_trace,
)
from stormlog.infer.trace_nsys import load_nsys_sqlite


def ref(value):
    return value and {"producer_id": value.producer_id, "id": value.id}


def call(value):
    return value and {key: getattr(value, key) for key in ("pid", "tid", "ts_us", "name")}


HEADER = ("source", "base_ns", "host", "trace_id", "rank", "world_size", "engine_version", "cupti_version")
EVENT = ("start_ns", "end_ns", "kind", "name", "device", "stream", "correlation", "graph_id",
         "graph_node_id", "pid", "device_uuid", "device_name")


def trace_rows(trace):
    header = {key: getattr(trace, key) for key in HEADER}
    names = {str(ordinal): name for ordinal, name in trace.device_names.items()}
    yield {"rec": "header", **header, "device_names": names}
    for index, event in enumerate(trace.gpu_events):
        link = link_gpu_event(trace, event)
        fields = {key: getattr(event, key) for key in EVENT}
        yield {"rec": "gpu_event", "index": index, **fields, "link": {
            "iteration_ref": ref(link.iteration_ref), "reason": link.reason, "launch": call(link.launch)}}
    for (pid, correlation), launch in trace.launches.items():
        yield {"rec": "launch", "key_pid": pid, "correlation": correlation, **call(launch)}
    for pid, tid in sorted(trace.spans):
        for span in trace.spans[pid, tid]:
            yield {"rec": "span", "pid": pid, "tid": tid, "start_us": span.start_us,
                   "end_us": span.end_us, "iteration_ref": ref(span.iteration_ref)}
    for text in trace.notes:
        yield {"rec": "note", "text": text}
    for name, count in trace.not_imported.items():
        yield {"rec": "not_imported", "name": name, "count": count}


def capture_rows(trace, request, detail):
    attachment = None
    if request.get("attachment"):
        attachment = TraceAttachment(
            attachment_id=request["attachment"], title="t", path=Path(request["path"]))
    capture = capture_trace(
        trace, request["path"], run_id="run-1", session_id="session-1", attachment=attachment,
        device_uuids={int(k): v for k, v in (request.get("device_uuids") or {}).items()},
        device_uuids_by_pid={
            int(pid): {int(k): v for k, v in devices.items()}
            for pid, devices in (request.get("by_pid") or {}).items()
        },
        detail=detail,
    )
    caps = capture.capabilities
    yield {"rec": "capabilities", "supported": list(caps.supported),
           "enabled": list(caps.enabled), "collected": list(caps.collected)}
    yield {"rec": "summary", **capture.summary}
    for event in capture.events:
        yield event.to_record()


def guarded(make):
    try:
        return list(make())
    except Exception as exc:  # whatever the package raises is its answer
        return [{"rec": "error", "type": type(exc).__name__, "message": str(exc)}]


def emit(rows):
    # Records keep the package's order of keys and everything else is sorted, as
    # on the other side, so that most lines compare as bytes.
    for row in rows:
        text = json.dumps(row, sort_keys="rec" in row, separators=(",", ":"))
        sys.stdout.write(text + "\n")


def main():
    for line in sys.stdin:
        request = json.loads(line)
        loaded = []

        def load(request=request, loaded=loaded):
            read = load_nsys_sqlite if request["path"].endswith(".sqlite") else load_kineto_trace
            loaded.append(read(request["path"]))
            return trace_rows(loaded[0])

        emit(guarded(load))
        for detail in request["details"] if loaded else ():
            emit([{"rec": "detail", "detail": detail}])
            emit(guarded(lambda: capture_rows(loaded[0], request, detail)))
        emit([{"rec": "end"}])
        sys.stdout.flush()


gc.disable()  # the documents are trees: counting references frees them
main()
