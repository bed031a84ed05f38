"""FX graphs as rows and as plain values."""

import operator

from .tables import compact

MAX_LIST = 256


class Book:
    """All graphs of a run, each under its id, and which node came from which."""

    def __init__(self):
        self.graphs = []
        self._counts = {}
        self._by_address = {}
        self._names = {}

    def add(self, gm, kind, made_from=None):
        """Keeps a graph; its id. The nodes are read at once: compilers go on to
        change the graph that they were given. made_from is the graph that a
        compiler changed into this one: a node that kept its name and its target
        is the same one."""
        index = self._counts.get(kind, 0)
        self._counts[kind] = index + 1
        graph_id = f"{kind}/{index}"
        graph = gm.graph if hasattr(gm, "graph") else gm
        self._by_address[id(graph)] = graph_id
        self._names[graph_id] = {n.name for n in graph.nodes}
        before = {r["node"]: r["target"] for r in self.find(made_from)["nodes"]} if made_from else {}
        nodes = [self._row(i, n, made_from, before) for i, n in enumerate(graph.nodes)]
        self.graphs.append({"graph_id": graph_id, "kind": kind, "index": index, "nodes": nodes, "graph": graph, "text": str(graph)})
        return graph_id

    def ids(self, kind):
        return [g["graph_id"] for g in self.graphs if g["kind"] == kind]

    def find(self, graph_id):
        return next(g for g in self.graphs if g["graph_id"] == graph_id)

    def _row(self, index, node, made_from, before):
        columns = values(node)
        if node.name in before and before[node.name] == target_name(node):
            from_graph, from_node = made_from, node.name
        else:
            from_graph, from_node = self._origin(node)
        return {
            "node_index": index,
            "node": node.name,
            "op": node.op,
            "target": target_name(node),
            "args_json": compact([plain(a) for a in node.args]),
            "kwargs_json": compact({k: plain(v) for k, v in node.kwargs.items()}),
            "users_json": compact([u.name for u in node.users]),
            **columns,
            "module": module_path(node),
            "original_aten": _text(node.meta.get("original_aten")),
            "sequence_nr": _sequence(node),
            "partitioner_tag": node.meta.get("partitioner_tag"),
            "from_graph_id": from_graph,
            "from_node": from_node,
            "stack": (node.meta.get("stack_trace") or "").strip() or None,
        }

    def _origin(self, node):
        """The nearest node of an earlier graph that torch says this one was
        made from. Graphs in between that nobody kept are stepped over."""
        pending = list(node.meta.get("from_node") or ())
        while pending:
            source = pending.pop(0)
            info = getattr(source, "node_info", None)
            if info is not None:
                known = self._by_address.get(info.graph_id)
                if known and info.name in self._names[known]:
                    return known, info.name
            pending = list(getattr(source, "from_node", None) or ()) + pending
        return None, None

    def write(self, ctx):
        with ctx.table("graph_nodes") as table:
            for graph in self.graphs:
                for row in graph["nodes"]:
                    table.row(graph_id=graph["graph_id"], graph_kind=graph["kind"], graph_index=graph["index"], **row)


def _text(value):
    return None if value is None else str(value)


def _sequence(node):
    number = node.meta.get("seq_nr")
    return number if isinstance(number, int) and 0 <= number < 1 << 63 else None


def target_name(node):
    target = node.target
    if isinstance(target, str):
        return target
    if hasattr(target, "_schema"):  # an operator of torch
        return str(target)
    module = getattr(target, "__module__", None)
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or str(target)
    if module in (None, "builtins") or module == operator.__name__:
        return name
    return f"{module}.{name}"


def plain(value):
    """An argument as JSON: nodes as {"node": name}."""
    import torch
    from torch.fx import Node

    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, slice):
        return {"slice": [plain(value.start), plain(value.stop), plain(value.step)]}
    if isinstance(value, (list, tuple)):
        out = [plain(v) for v in value[:MAX_LIST]]
        return out if len(value) <= MAX_LIST else [*out, f"… {len(value) - MAX_LIST} more"]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, torch.Tensor):
        return {"tensor": list(value.shape), "dtype": str(value.dtype)}
    return str(value)[:500]


def values(node):
    """Shape, dtype, stride and device of the node's result."""
    import torch

    value = node.meta.get("val")
    if value is None:
        value = node.meta.get("example_value")
    tensors = list(_tensors(value, torch))
    if not tensors:
        return {}
    many = not isinstance(value, torch.Tensor)
    shapes = [_sizes(t.shape) for t in tensors]
    strides = [_sizes(t.stride()) if t.layout == torch.strided else None for t in tensors]
    return {
        "shape_json": compact(shapes if many else shapes[0]),
        "stride_json": compact(strides if many else strides[0]),
        "dtype": str(tensors[0].dtype).removeprefix("torch."),
        "device": str(tensors[0].device),
    }


def _tensors(value, torch):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v, torch)


def _sizes(values):
    """Sizes; symbolic ones as text."""
    return [v if type(v) is int else str(v) for v in values]


def module_path(node):
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    path = list(stack.values())[-1][0]
    return clean_module(str(path))


def clean_module(path):
    """model.layers.0 out of L['self']._modules['model'].… and its kin."""
    for prefix in ("L['self'].", "L['fn'].", "L['model'].", "L['mod'].", "L['call']."):
        path = path.removeprefix(prefix)
    if path in ("L['self']", "L['fn']", "L['model']", "L['mod']", "L['call']", ""):
        return None
    out = path.replace("._modules['", ".").replace("']", "").replace("_modules['", "")
    return out.removeprefix(".") or None
