"""The model as an exported program."""

from .. import compiling, inputs
from ..errors import WorkerError
from ..tracer import Tracer


class TorchExport(Tracer):
    name = "torch_export"
    description = (
        "torch.export of the model: one whole graph, saved as .pt2 and as a table, with its signature. "
        "In train mode the model is exported in training state, with its loss, and the program takes one step: "
        "backward and optimizer are outside of its graph. "
        "Options: save (true) keeps the .pt2, which holds the weights; core_aten (false) adds the decomposed graph."
    )
    tables = ("graph_nodes",)
    files = ("torch_export.json", "torch_export.txt", "model.pt2")

    def run(self, ctx, output_dir):
        import torch

        ctx.model.train(ctx.train)
        arguments = dict(ctx.step.arguments)
        try:
            # Traced without dynamo: models that break its graphs still export.
            program = torch.export.export(ctx.model, (), arguments, strict=False)
        except Exception as error:
            text = " ".join(str(error).split())[:400]
            raise WorkerError("unsupported", f"torch.export cannot take {type(ctx.model).__name__}: {text}") from error
        ctx.phase("export")
        book = compiling.new_book()
        book.add(program.graph_module, "export")
        if ctx.option("core_aten", False):
            book.add(program.run_decompositions().graph_module, "export")
        book.write(ctx)
        ctx.write_text("torch_export.txt", str(program))
        if ctx.option("save", True):
            torch.export.save(program, ctx.path("model.pt2"))
            ctx.artifact("model.pt2", "other")
        # The program is run once as the model would be: it computes, and trains.
        ctx.step(program.module())
        summary = {
            "nodes": [len(g["nodes"]) for g in book.graphs],
            "inputs": [str(s) for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"],
            "outputs": [str(s) for s in program.graph_signature.output_specs],
            "range_constraints": {str(k): str(v) for k, v in program.range_constraints.items()},
            "example": inputs.shapes(arguments),
        }
        ctx.write_json("torch_export.json", summary)
        ctx.details["graph_nodes"] = summary["nodes"]
