"""The ATen graphs of one step: forward and backward, or inference."""

from .. import compiling
from ..tracer import Tracer

ATEN = ("aot_inference", "aot_forward", "aot_backward")


class PrintAtenOps(Tracer):
    name = "print_aten_ops"
    description = (
        "The ATen graphs that AOTAutograd makes of one step, as text and as a table, with shapes, "
        "sequence numbers and the FX node that each node came from. Train gives forward and backward graphs."
    )
    tables = ("graph_nodes",)
    files = ("print_aten.txt",)

    def run(self, ctx, output_dir):
        book = compiling.new_book()
        ctx.step(compiling.compiled(ctx, compiling.keep_aot(book)))
        compiling.require_graphs(ctx, book)
        ctx.phase("export")
        ctx.write_text("print_aten.txt", text(book))
        book.write(ctx)
        ctx.details.update(
            graphs={kind: len(book.ids(kind)) for kind in ("dynamo", *ATEN)},
            dynamo=compiling.counters(),
        )


def text(book):
    graphs = [g for g in book.graphs if g["kind"] in ATEN]
    blocks = [f"===== Graph {i} =====\n# {g['graph_id']}\n{g['text'].strip()}\n" for i, g in enumerate(graphs)]
    return "\n".join(blocks)
