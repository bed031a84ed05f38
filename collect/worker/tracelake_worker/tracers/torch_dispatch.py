"""Every operator of one step, counted by its arguments and in order."""

from .. import dispatch, signatures
from ..tracer import Tracer


class TorchDispatch(Tracer):
    name = "torch_dispatch"
    description = (
        "Every ATen and custom operator that one step runs, in order, with arguments, results, bytes, FLOPs, "
        "module and autograd number; and counted by operator and arguments. Options: warmup (0), stacks (true)."
    )
    tables = ("ops",)
    files = ("torch_dispatch.json",)

    def run(self, ctx, output_dir):
        rows = dispatch.record(ctx, stacks=ctx.option("stacks", True), warmup=ctx.option("warmup", 0))
        ctx.phase("export")
        ctx.write_json("torch_dispatch.json", counted(rows))
        dispatch.write_ops(ctx, rows)
        ctx.details.update(dispatch.totals(rows))


def counted(rows):
    """{operator: [{count, inputs}]}, operators that take and give a tensor."""
    found = {}
    for row in rows:
        if not signatures.has_tensor(row.inputs) or not signatures.has_tensor(row.outputs):
            continue
        text = signatures.signature(row.inputs, row.kwargs)
        counts = found.setdefault(str(row.func), {})
        counts[text] = counts.get(text, 0) + 1
    return {op: [{"count": n, "inputs": text} for text, n in counts.items()] for op, counts in found.items()}
