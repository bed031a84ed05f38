"""What Inductor compiles one step to."""

import os

from .. import compiling, inductor, profiling
from ..tracer import Tracer


class TorchInductor(Tracer):
    name = "torch_inductor"
    description = (
        "torch.compile with Inductor: IR before and after fusion, generated code, which graph nodes each kernel was "
        "fused from, Triton launch parameters, and a profile of the compiled step in which these kernels run. "
        "Needs a C++ compiler. Options: profile (true), warmup (1), active (1)."
    )
    tables = ("graph_nodes", "fusions", "kernels_generated")
    files = ("inductor_dump/**", "torch_inductor.txt", "torch_inductor_kernels.json", "trace/*.pt.trace.json.gz")

    def run(self, ctx, output_dir):
        compiling.reset()
        book = compiling.new_book()
        watch = inductor.Watch(ctx, book)
        with inductor.settings(output_dir), watch.hooked():
            compiled = compiling.compiled(ctx, watch.backend)
            ctx.step(compiled)  # compiles, the backward pass too
            compiling.require_graphs(ctx, book)
            found = compiling.counters()
            if ctx.option("profile", True):
                profiling.run(
                    ctx,
                    lambda: ctx.step(compiled),
                    warmup=ctx.option("warmup", 1),
                    active=ctx.option("active", 1),
                    with_stack=False,
                )
        ctx.phase("export")
        book.write(ctx)
        kernels = inductor.write_tables(ctx, watch)
        ctx.write_json("torch_inductor_kernels.json", kernels)
        ctx.write_text("torch_inductor.txt", "".join(p + "\n" for p in dumped(output_dir)))
        ctx.details.update(
            graphs={k: len(book.ids(k)) for k in ("dynamo", "aot_inference", "aot_forward", "aot_backward", "inductor")},
            kernels={b: sum(k.backend == b for k in watch.kernels.values()) for b in ("triton", "cpp", "extern")},
            dynamo=found,
            provenance_problems=watch.problems[:20],
        )


def dumped(output_dir):
    """Files of the dump, relative to the output directory. Lock files go."""
    out = []
    for folder, _, names in os.walk(os.path.join(output_dir, "inductor_dump")):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".lock"):
                os.remove(path)
            else:
                out.append(os.path.relpath(path, output_dir))
    return sorted(out)
