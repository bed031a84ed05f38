"""A Chakra execution trace of one step, joined to the profiler's trace of it."""

import json
import os

from .. import kineto, profiling
from ..errors import WorkerError
from ..steps import PHASES
from ..tables import compact
from ..tracer import Tracer

NAME = "execution_trace.json"


class ExecutionTrace(Tracer):
    name = "execution_trace"
    description = (
        "torch's execution trace (Chakra's input) of one step together with a Kineto trace of the same step, "
        "joined by rf_id, which Kineto calls Record function id. Options: warmup (1)."
    )
    tables = ("ops",)
    files = ("execution_trace.json", "execution_trace_join.json", "trace/*.pt.trace.json.gz")

    def run(self, ctx, output_dir):
        from torch.profiler import ExecutionTraceObserver

        observer = ExecutionTraceObserver().register_callback(ctx.path(NAME))
        try:
            _, trace = profiling.run(ctx, ctx.step, warmup=ctx.option("warmup", 1), with_stack=False, observer=observer)
        finally:
            observer.unregister_callback()
        ctx.artifact(NAME, "trace")
        ctx.phase("export")
        nodes = read(os.path.join(output_dir, NAME))
        profile = kineto.load(os.path.join(output_dir, trace), PHASES)
        by_record = {op.record_id: op for op in profile.ops if op.record_id is not None}
        write_ops(ctx, [n for n in nodes if attribute(n, "rf_id") not in profile.annotation_records], by_record)
        # Ranges have record functions as well, without being operators.
        found = join(nodes, {r: op.name for r, op in by_record.items()}, profile.annotation_records)
        ctx.write_json("execution_trace_join.json", found)
        ctx.details["join"] = {k: v for k, v in found.items() if not isinstance(v, list)}


def read(path):
    """The nodes of an execution trace."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            trace = json.load(f)
        return trace["nodes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkerError("tracer", f"{path}: not an execution trace: {error}") from error


def attribute(node, name):
    """An attribute of a node: a list of {name, type, value} since schema 1.0.2."""
    attrs = node.get("attrs")
    if isinstance(attrs, list):
        return next((a.get("value") for a in attrs if a.get("name") == name), None)
    return node.get(name)


def is_operator(node):
    """Operators have a record function; the process and its threads have none."""
    number = kineto.integer(attribute(node, "rf_id"))
    return number is not None and number > 0


def join(nodes, operators, ranges):
    """How well the two traces go together: names by rf_id on either side."""
    names = {**ranges, **operators}
    recorded = [(n, int(attribute(n, "rf_id"))) for n in nodes if is_operator(n)]
    missing = [(n, record) for n, record in recorded if record not in names]
    ids = {record for _, record in recorded}
    return {
        "nodes": len(nodes),
        "operators": len(recorded),
        "matched": len(recorded) - len(missing),
        "names_agree": sum(names.get(record) == n["name"] for n, record in recorded),
        "kineto_operators": len(operators),
        "kineto_only": sum(r not in ids for r in operators),
        "unmatched": [{"id": n.get("id"), "name": n.get("name"), "rf_id": record} for n, record in missing[:100]],
    }


def write_ops(ctx, nodes, by_record):
    # Nodes are written as they end; record functions are counted as they begin.
    operators = sorted((n for n in nodes if is_operator(n)), key=lambda n: int(attribute(n, "rf_id")))
    index = {n["id"]: i for i, n in enumerate(operators)}
    with ctx.table("ops") as table:
        for i, node in enumerate(operators):
            record = int(attribute(node, "rf_id"))
            op = by_record.get(record)
            sequence = kineto.integer(attribute(node, "seq_id"))
            name, _, overload = node["name"].partition(".")
            schema = str(attribute(node, "op_schema") or "")
            if schema.startswith(node["name"] + "."):
                overload = schema[len(node["name"]) + 1 :].partition("(")[0]
            table.row(
                op_index=i,
                step=0,
                phase=op.phase if op else None,
                name=name if "::" in node["name"] else node["name"],
                overload=overload or None,
                inputs_json=values(node.get("inputs")),
                outputs_json=values(node.get("outputs")),
                flops=op.args.get("flops") if op else None,
                module=op.module if op else None,
                sequence_nr=sequence if sequence is not None and sequence >= 0 else None,
                record_id=record,
                external_id=op.external_id if op else None,
                parent_index=index.get(node.get("ctrl_deps", node.get("parent"))),
                dur_ns=op.end - op.start if op else None,
            )


def values(side):
    """Inputs or outputs: {values, shapes, types, strides} side by side."""
    if not isinstance(side, dict):
        return None
    shapes, types = side.get("shapes") or [], side.get("types") or []
    strides, scalars = side.get("strides") or [], side.get("values") or []

    def at(items, i):
        return items[i] if i < len(items) else None

    out = []
    for i, kind in enumerate(types):
        if "Tensor" in str(kind):
            one = {"shape": at(shapes, i), "dtype": kind, "stride": at(strides, i), "tensor": at(scalars, i)}
            out.append(one)
        else:
            out.append(at(scalars, i))
    return compact(out)
