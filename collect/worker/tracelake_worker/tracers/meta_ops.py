"""Operators, shapes and FLOPs of a model from its configuration alone."""

import collections

from .. import dispatch, inputs, meta_graph, models, runner
from ..errors import chain, unsupported
from ..tracer import Tracer


class MetaOps(Tracer):
    name = "meta_ops"
    description = (
        "The operator graph of one step on the meta device: shapes, bytes and FLOPs of every operator, "
        "from config.json alone. Needs no weights, no tokenizer and no GPU. Options: stacks (false)."
    )
    tables = ("ops", "graph_nodes")
    files = ("meta_ops.json",)
    needs_model = False
    needs_weights = False

    def run(self, ctx, output_dir):
        import torch

        ctx.phase("load_model")
        torch.manual_seed(ctx.job.seed)
        ctx.device = torch.device("meta")
        ctx.config = models.load_config(ctx.job, ctx.model_path)
        cls, ctx.family = models.model_class(ctx.job, ctx.config)
        ctx.dtype = models.config_dtype(ctx.config) if ctx.job.dtype == "auto" else getattr(torch, ctx.job.dtype)
        attention = ctx.job.options.get("attn_implementation")
        extra = {"attn_implementation": attention} if attention else {}
        ctx.model = models.from_config(ctx.job, cls, ctx.config, ctx.dtype, "meta", **extra).eval()
        _batched_experts(ctx)
        ctx.phase("inputs")
        # Only shapes matter, but prompts decide the shape where they are given.
        tokenizer = inputs.load_tokenizer(ctx.job, ctx.model_path)[0] if ctx.job.prompts else None
        ctx.inputs = inputs.build(ctx.job, ctx.model, ctx.config, ctx.device, tokenizer)
        # Models ask whether a mask hides anything, which is a question about values.
        if ctx.inputs.pop("attention_mask", None) is not None:
            ctx.details["attention_mask"] = "left out: masks have no values on the meta device"
        runner.finish_prepare(ctx)
        flow = meta_graph.Flow(_named(ctx))
        try:
            rows = dispatch.record(ctx, graph=flow, stacks=ctx.option("stacks", False))
        except Exception as error:
            if any(_needs_data(link) for link in chain(error)):
                text = " ".join(str(error).split())[:200]
                raise unsupported(f"the model looks at values, which the meta device has none of: {text}") from error
            raise
        ctx.phase("export")
        dispatch.write_ops(ctx, rows)
        with ctx.table("graph_nodes") as table:
            flow.write(table, "meta/0", "meta")
        summary = summarize(ctx, rows)
        ctx.write_json("meta_ops.json", summary)
        ctx.details.update(dispatch.totals(rows))


def _batched_experts(ctx):
    """Experts as one batched product: the other forms sort tokens by expert,
    which is a question about values, or have no FLOP formula."""
    can = getattr(type(ctx.model), "_can_set_experts_implementation", None)
    if can is not None and can():
        ctx.model.set_experts_implementation("batched_mm")
        ctx.details["experts_implementation"] = "batched_mm"


def _named(ctx):
    for name, parameter in ctx.model.named_parameters():
        yield "get_attr", name, parameter
    for name, buffer in ctx.model.named_buffers():
        yield "get_attr", name, buffer
    for name, value in ctx.step.arguments.items():
        if hasattr(value, "untyped_storage"):
            yield "placeholder", name, value


def _needs_data(error):
    """What torch raises when an operator's result depends on values."""
    if isinstance(error, NotImplementedError):
        return True
    text = str(error).lower()
    return "meta tensor" in text or "data-dependent" in text or "item() cannot be called on meta" in text


def summarize(ctx, rows):
    """FLOPs and bytes by operator and by module."""
    by_op = collections.defaultdict(lambda: {"count": 0, "flops": 0, "input_bytes": 0, "output_bytes": 0})
    by_module = collections.Counter()
    for row in rows:
        one = by_op[f"{row.name}.{row.overload}"]
        one["count"] += 1
        one["flops"] += row.flops or 0
        one["input_bytes"] += row.in_bytes
        one["output_bytes"] += row.out_bytes
        if row.flops:
            by_module[row.module or ""] += row.flops
    parameters = list(ctx.model.parameters())
    return {
        "architecture": type(ctx.model).__name__,
        "mode": ctx.mode,
        "dtype": str(ctx.dtype).removeprefix("torch."),
        "inputs": inputs.shapes(ctx.inputs),
        "parameters": sum(p.numel() for p in parameters),
        "parameter_bytes": sum(p.numel() * p.element_size() for p in parameters),
        "flops": sum(r.flops or 0 for r in rows),
        "ops": len(rows),
        "by_op": dict(sorted(by_op.items(), key=lambda item: -item[1]["flops"])),
        "flops_by_module": dict(by_module.most_common()),
    }
