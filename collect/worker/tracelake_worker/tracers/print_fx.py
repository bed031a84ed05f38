"""The FX graphs of one step, as dynamo makes them."""

from .. import compiling
from ..tracer import Tracer


class PrintFx(Tracer):
    name = "print_fx"
    description = "Every FX graph that dynamo makes of one step, node by node; graph breaks give several graphs, all are kept."
    tables = ("graph_nodes",)
    files = ("print_fx.json",)

    def run(self, ctx, output_dir):
        book = compiling.new_book()
        ctx.step(compiling.compiled(ctx, compiling.keep_dynamo(book)))
        compiling.require_graphs(ctx, book)
        ctx.phase("export")
        ctx.write_json("print_fx.json", fx_json(book))
        book.write(ctx)
        ctx.details.update(graphs=len(book.graphs), dynamo=compiling.counters())


def fx_json(book):
    """All nodes of all graphs in one list, each with the number of its graph."""
    nodes = []
    for graph in book.graphs:
        for node, row in zip(graph["graph"].nodes, graph["nodes"], strict=True):
            nodes.append(
                {
                    "name": node.name,
                    "op": node.op,
                    "target": str(node.target),
                    "args": str(node.args),
                    "kwargs": str(node.kwargs),
                    "users": [u.name for u in node.users],
                    "graph": graph["index"],
                    "shape": row.get("shape_json"),
                    "dtype": row.get("dtype"),
                    "module": row.get("module"),
                }
            )
    return {"type": "fx_graph", "graph_count": len(book.graphs), "nodes": nodes}
