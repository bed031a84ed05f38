"""Runs the step through torch.compile with a backend that keeps every graph."""

from .fxgraph import Book


def reset():
    import torch

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def compiled(ctx, backend):
    """The model behind torch.compile: static shapes, graph breaks allowed."""
    import torch

    reset()
    return torch.compile(ctx.model, backend=backend, dynamic=False, fullgraph=False)


def keep_dynamo(book, seen=None):
    """A backend that keeps the graph as dynamo gives it and runs it as is."""

    def backend(gm, _example_inputs):
        graph_id = book.add(gm, "dynamo")
        if seen is not None:
            seen(graph_id, gm)
        return gm.forward

    return backend


def keep_aot(book):
    """A backend that keeps dynamo's graphs and what AOTAutograd makes of them:
    ATen graphs of the forward, of the backward, or of inference."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    def keep(kind):
        def compile_graph(gm, _example_inputs):
            book.add(gm, kind)
            return make_boxed_func(gm.forward)

        return compile_graph

    inner = aot_autograd(
        fw_compiler=keep("aot_forward"),
        bw_compiler=keep("aot_backward"),
        inference_compiler=keep("aot_inference"),
    )

    def backend(gm, example_inputs):
        book.add(gm, "dynamo")
        return inner(gm, example_inputs)

    return backend


def counters():
    """What dynamo itself counted, for the result line."""
    import torch

    found = torch._dynamo.utils.counters
    stats = found["stats"]
    return {
        "unique_graphs": int(stats.get("unique_graphs", 0)),
        "graph_breaks": {str(k)[:300]: int(v) for k, v in found["graph_break"].items()},
    }


def require_graphs(ctx, book):
    from .errors import WorkerError

    if not book.graphs:
        raise WorkerError("tracer", f"torch.compile made no graph of {type(ctx.model).__name__}: every frame fell back to eager")


def new_book():
    return Book()
