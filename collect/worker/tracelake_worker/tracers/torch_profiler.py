"""torch.profiler around one step."""

import os

from .. import kernel_profile, kineto, profiling
from ..steps import PHASES
from ..tracer import Tracer


class TorchProfiler(Tracer):
    name = "torch_profiler"
    description = (
        "torch.profiler (CPU and device) over one step: the trace itself, operators by shape, "
        "and every kernel with the operator that launched it. "
        "Options: warmup (1), active (1), with_stack (true), profile_memory (true), with_flops (true)."
    )
    version = "1"
    tables = ("ops",)
    files = ("trace/*.pt.trace.json.gz", "torch_profile.json", "torch_kernel_profile.json", "torch_kernel_profile.csv")

    def run(self, ctx, output_dir):
        profiler, trace = self.profile(ctx)
        ctx.phase("export")
        ctx.write_json("torch_profile.json", by_shape(profiler))
        linked = kineto.load(os.path.join(output_dir, trace), PHASES)
        kernel_profile.write(ctx, linked, "torch")
        kernel_profile.write_ops(ctx, linked)
        ctx.details.update(kernel_profile.counts(linked))

    def profile(self, ctx):
        return profiling.run(
            ctx,
            ctx.step,
            warmup=ctx.option("warmup", 1),
            active=ctx.option("active", 1),
            with_stack=ctx.option("with_stack", True),
            memory=ctx.option("profile_memory", True),
            flops=ctx.option("with_flops", True),
        )


def by_shape(profiler):
    """Operators with their input shapes, as the profiler averages them."""
    stacks = {}
    for event in profiler.events():
        key = (event.key, str(event.input_shapes))
        if event.stack and key not in stacks:
            stacks[key] = list(event.stack)
    out = {}
    for average in profiler.key_averages(group_by_input_shape=True):
        shapes = str(average.input_shapes)
        out.setdefault(average.key, []).append(
            {
                "count": average.count,
                "cpu_time_total": average.cpu_time_total,
                "cuda_time_total": average.device_time_total,
                "self_cpu_time_total": average.self_cpu_time_total,
                "input_shapes": shapes,
                "stack": stacks.get((average.key, shapes), []),
                "self_cuda_time_total": average.self_device_time_total,
                "cpu_memory_usage": average.cpu_memory_usage,
                "cuda_memory_usage": average.device_memory_usage,
                "flops": average.flops,
            }
        )
    return out
