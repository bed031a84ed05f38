"""A model whose graph breaks in its layers, seen by dynamo, by print_fx and by
torch's own explanation."""

from tracelake_worker import compiling
from tracelake_worker.tracers.print_fx import fx_json
from tracelake_worker.tracers.torch_dynamo import TorchDynamo


class Breaks(TorchDynamo):
    name = "breaks"

    def run(self, ctx, output_dir):
        import torch

        for layer in ctx.model.model.layers:
            inner = layer.mlp.forward

            def forward(x, inner=inner):
                torch._dynamo.graph_break()
                return inner(x)

            layer.mlp.forward = forward
        super().run(ctx, output_dir)
        book = compiling.new_book()
        ctx.step(compiling.compiled(ctx, compiling.keep_dynamo(book)))
        ctx.write_json("print_fx.json", fx_json(book))
        with torch.no_grad():
            explained = torch._dynamo.explain(ctx.model)(**ctx.inputs)
        ctx.write_json("explained.json", {"graphs": explained.graph_count, "breaks": len(explained.break_reasons)})
