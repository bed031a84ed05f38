"""What dynamo does with one step: graphs, graph breaks and guards."""

import traceback

from .. import compiling
from ..tracer import Tracer


class TorchDynamo(Tracer):
    name = "torch_dynamo"
    description = (
        "Dynamo's view of one step: every graph, why each one ended (graph breaks with the user's source lines) "
        "and every guard that a later call is checked against."
    )
    tables = ("graph_nodes", "graph_breaks", "guards")
    files = ("torch_dynamo.json",)

    def run(self, ctx, output_dir):
        import torch

        watch = _Watch()
        compiling.reset()
        # torch.compile does not hand out guards; what explain() is made of does.
        optimize = torch._dynamo.optimize(
            compiling.keep_dynamo(watch.book, watch.graph), nopython=False, dynamic=False, guard_export_fn=watch.guards
        )
        ctx.step(optimize(ctx.model))
        compiling.require_graphs(ctx, watch.book)
        ctx.phase("export")
        watch.book.write(ctx)
        self._write_breaks(ctx, watch)
        self._write_guards(ctx, watch)
        summary = {
            "graph_count": len(watch.book.graphs),
            "graph_break_count": len(watch.breaks),
            "guard_count": len(watch.found_guards),
            "graphs": [{"graph_id": g["graph_id"], "nodes": len(g["nodes"])} for g in watch.book.graphs],
            "dynamo": compiling.counters(),
        }
        ctx.write_json("torch_dynamo.json", summary)
        ctx.details.update(summary)

    def _write_breaks(self, ctx, watch):
        with ctx.table("graph_breaks") as table:
            for i, (graph_id, reason) in enumerate(watch.breaks):
                stack = list(reason.user_stack or ())
                frame = stack[-1] if stack else None
                table.row(
                    break_index=i,
                    reason=str(reason.reason),
                    file=frame.filename if frame else None,
                    line=frame.lineno if frame else None,
                    function=frame.name if frame else None,
                    user_stack="".join(traceback.format_list(stack)).strip() or None,
                    graph_before=graph_id,
                )

    def _write_guards(self, ctx, watch):
        with ctx.table("guards") as table:
            for i, (graph_id, guard) in enumerate(watch.found_guards):
                code = _field(guard, "code_list", "code")
                table.row(
                    guard_index=i,
                    graph_id=graph_id,
                    guard_type=_guard_type(guard),
                    source=str(_field(guard, "name") or "") or None,
                    code="\n".join(map(str, code)) if isinstance(code, (list, tuple)) else code,
                    stack=_guard_stack(guard),
                )


class _Watch:
    """Guards are handed out once a frame, after its graphs were compiled."""

    def __init__(self):
        self.book = compiling.new_book()
        self.breaks = []
        self.found_guards = []
        self._frame_graph = None

    def graph(self, graph_id, gm):
        self._frame_graph = graph_id
        reason = getattr(gm, "compile_subgraph_reason", None)
        if reason is not None and getattr(reason, "graph_break", True):
            self.breaks.append((graph_id, reason))

    def guards(self, guards):
        self.found_guards += [(self._frame_graph, g) for g in guards]
        self._frame_graph = None


def _field(guard, *names):
    for name in names:
        value = getattr(guard, name, None)
        if value:
            return value
    return None


def _guard_type(guard):
    kinds = _field(guard, "guard_types", "guard_type")
    if isinstance(kinds, (list, tuple)):
        return ", ".join(dict.fromkeys(map(str, kinds)))
    if kinds:
        return str(kinds)
    create = getattr(guard, "create_fn", None)
    create = getattr(create, "func", create)
    return getattr(create, "__name__", None)


def _guard_stack(guard):
    stack = _field(guard, "user_stack", "stack")
    if not stack:
        return None
    try:
        return "".join(traceback.format_list(list(stack))).strip()
    except (TypeError, ValueError, AttributeError):
        return None
