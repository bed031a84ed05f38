"""The kernel profile of a trace: which operator launched what, and how long it took."""

import collections
import csv
import json

from .tables import compact

CSV_HEADER = ("cpu_op_name", "cpu_op_total_count", "gpu_kernel_name", "gpu_kernel_total_count")


def rows(profile):
    """One row for every run of an operator that started work on a GPU, by
    sequence number, those without one last; then work that no operator of the
    trace launched, in one row."""
    out = [_row(op, op.gpu) for op in profile.ops if op.gpu]
    out.sort(key=lambda r: (r["sequence_number"] is None, r["sequence_number"] or 0, r["occurrence"]))
    if profile.unattributed:
        out.append(_row(None, profile.unattributed))
    return out


def _row(op, gpu):
    kernels = [g for g in gpu if g.kind == "kernel"]
    memory = [g for g in gpu if g.kind != "kernel"]
    durations = [k.duration for k in kernels]
    dims = _dims(op) if op else None
    by_stream = collections.Counter(str(k.stream) for k in kernels)
    counts = collections.Counter(k.name for k in kernels)
    return {
        "sequence_number": op.sequence if op else None,
        "cpu_op_name": op.name if op else None,
        "cpu_op_cat": op.category if op else None,
        "cpu_external_id": op.external_id if op else None,
        "cpu_time_us": _us(op.end - op.start) if op else None,
        "total_kernel_time_us": _us(sum(durations)),
        "kernel_call_count": dict(counts),
        "associated_kernels": [_gpu(k) for k in kernels],
        "kernel_call_count_by_shape": {dims: dict(counts)} if dims and kernels else {},
        "kernel_call_count_by_stream": dict(by_stream),
        "kernel_duration_stats_us": {
            "min": _us(min(durations)),
            "max": _us(max(durations)),
            "avg": round(sum(durations) / len(durations) / 1000, 3),
        }
        if durations
        else None,
        "input_dims_count": {dims: 1} if dims else {},
        "call_stack": op.stack if op else None,
        "occurrence": op.index if op else None,
        "phase": op.phase if op else None,
        "module": op.module if op else None,
        "thread": op.tid if op else None,
        "record_function_id": op.record_id if op else None,
        "launch_count": op.launches if op else None,
        "associated_memory_ops": [_gpu(m) for m in memory],
        "total_memory_op_time_us": _us(sum(m.duration for m in memory)),
    }


def _gpu(g):
    out = {
        "kernel_name": g.name,
        "kernel_cat": g.category,
        "kernel_external_id": g.correlation,
        "kernel_duration_us": _us(g.duration),
        "stream_id": g.stream,
        "device": g.device,
        "launched_by": g.launch.name if g.launch else None,
    }
    if g.kind != "kernel":
        out["kind"] = g.kind
    return out


def _us(ns):
    return round(ns / 1000, 3)


def _dims(op):
    dims = op.args.get("Input Dims")
    if dims is None:
        return None
    types = op.args.get("Input type") or []
    return str(tuple(zip(types, dims, strict=False))) if len(types) == len(dims) else str(dims)


def calls(profile):
    """How often each operator was called, with or without a kernel, as the
    profiler's own averages count: an operator that does nothing but call its
    own other overload is one call."""
    children = collections.Counter(op.parent for op in profile.ops if op.parent is not None)
    return collections.Counter(op.name for op in profile.ops if op.parent is None or op.parent.name != op.name or children[op.parent] != 1)


def csv_rows(profile):
    """(operator, calls of it, kernel, launches of it by that operator): the
    operator's name and count stand on every row."""
    called = calls(profile)
    kernels = collections.defaultdict(collections.Counter)
    for g in profile.gpu:
        if g.kind == "kernel":
            kernels[g.op.name if g.op else ""][g.name] += 1
    out = []
    for op in sorted(kernels, key=lambda n: (-sum(kernels[n].values()), n)):
        for name, count in sorted(kernels[op].items(), key=lambda item: (-item[1], item[0])):
            out.append((op, called.get(op, 0) if op else "", name, count))
    return out


def write(ctx, profile, prefix):
    """PREFIX_kernel_profile.json and .csv."""
    name = f"{prefix}_kernel_profile"
    with open(ctx.path(name + ".json"), "w", encoding="utf-8", errors="backslashreplace") as f:
        f.write("[")
        for i, row in enumerate(rows(profile)):
            f.write((",\n" if i else "\n") + json.dumps(row, default=str))
        f.write("\n]\n")
    with open(ctx.path(name + ".csv"), "w", encoding="utf-8", errors="backslashreplace", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(CSV_HEADER)
        writer.writerows(csv_rows(profile))
    ctx.artifact(name + ".json", "report")
    ctx.artifact(name + ".csv", "report")


def counts(profile):
    """For the result line."""
    return {
        "cpu_ops": len(profile.ops),
        "launches": len(profile.launches),
        "kernels": sum(g.kind == "kernel" for g in profile.gpu),
        "memory_ops": sum(g.kind != "kernel" for g in profile.gpu),
        "gpu_events_without_op": len(profile.unattributed),
    }


def write_ops(ctx, profile, step_names=("ProfilerStep#",)):
    """The ops table, a row for every run of an operator."""
    steps = sorted((s, e, n) for s, e, n in profile.annotations if n.startswith(step_names))
    with ctx.table("ops") as table:
        for op in profile.ops:
            step = next((i for i, (s, e, _) in enumerate(steps) if s <= op.start < e), None)
            name, _, overload = op.name.partition(".")
            table.row(
                op_index=op.index,
                step=step,
                phase=op.phase,
                name=name if "::" in op.name else op.name,
                overload=overload or None if "::" in op.name else None,
                inputs_json=_inputs(op.args),
                flops=op.args.get("flops"),
                module=op.module,
                stack="\n".join(op.stack) if op.stack else None,
                sequence_nr=op.sequence,
                record_id=op.record_id,
                external_id=op.external_id,
                parent_index=op.parent.index if op.parent else None,
                dur_ns=op.end - op.start,
            )


def _inputs(args):
    dims = args.get("Input Dims")
    if dims is None:
        return None
    types = args.get("Input type") or []
    strides = args.get("Input Strides") or []
    concrete = args.get("Concrete Inputs") or []

    def at(values, i):
        return values[i] if i < len(values) else None

    out = []
    for i, shape in enumerate(dims):
        kind = at(types, i) or ""
        if shape == [] and at(concrete, i) not in (None, ""):
            out.append(at(concrete, i))
        else:
            out.append({"shape": shape, "dtype": kind, "stride": at(strides, i)})
    return compact(out)
