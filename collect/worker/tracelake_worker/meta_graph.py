"""The flow of tensors between recorded operators, as a graph."""

from .tables import compact


class Flow:
    """Takes operators as they run on the meta device. Tensors there have no
    data, so all of them can be kept alive, and an address names one storage for
    good. A tensor comes from the operator that last gave exactly that view, or
    last wrote to its storage."""

    def __init__(self, named_tensors):
        self.nodes = []
        self._kept = []
        self._exact = {}
        self._storage = {}
        self._seen = set()
        for op, name, tensor in named_tensors:
            node = {"node": name, "op": op, "target": name, "args": [], "kwargs": {}, "users": [], "tensor": tensor, "row": None}
            self._place(node, tensor)
            self.nodes.append(node)

    def _key(self, tensor):
        storage = tensor.untyped_storage()._cdata
        return storage, (storage, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)

    def _place(self, node, tensor):
        self._kept.append(tensor.untyped_storage())
        storage, exact = self._key(tensor)
        self._exact[exact] = node
        self._storage[storage] = node

    def _producer(self, tensor):
        storage, exact = self._key(tensor)
        written = self._storage.get(storage)
        found = self._exact.get(exact)
        return found or written

    def add(self, row, args, kwargs, out):
        name = self._name(row)
        node = {"node": name, "op": "call_function", "target": str(row.func), "users": [], "tensor": None, "row": row}
        node["args"] = [self._argument(a, node) for a in args]
        node["kwargs"] = {k: self._argument(v, node) for k, v in kwargs.items()}
        outputs = [t for t in _tensors(out)]
        node["tensor"] = outputs[0] if len(outputs) == 1 else outputs
        if row.func._schema.is_mutable:
            self._forget_views(outputs)
        for tensor in outputs:
            self._place(node, tensor)
        self.nodes.append(node)

    def _forget_views(self, outputs):
        """A write through one view changes what the others show."""
        storages = {t.untyped_storage()._cdata for t in outputs}
        for key in [k for k in self._exact if k[0] in storages]:
            del self._exact[key]

    def _argument(self, value, user):
        import torch

        if isinstance(value, torch.Tensor):
            producer = self._producer(value)
            if producer is None:
                return {"tensor": list(value.shape)}
            if user["node"] not in producer["users"]:
                producer["users"].append(user["node"])
            return {"node": producer["node"]}
        if isinstance(value, (list, tuple)):
            return [self._argument(v, user) for v in value]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        return str(value)

    def _name(self, row):
        base = row.func._schema.name.partition("::")[2]
        name, n = base, 0
        while name in self._seen:
            n += 1
            name = f"{base}_{n}"
        self._seen.add(name)
        return name

    def write(self, table, graph_id, kind):
        for i, node in enumerate(self.nodes):
            row = node["row"]
            table.row(
                graph_id=graph_id,
                graph_kind=kind,
                graph_index=0,
                node_index=i,
                node=node["node"],
                op=node["op"],
                target=node["target"],
                args_json=compact(node["args"]),
                kwargs_json=compact(node["kwargs"]),
                users_json=compact(node["users"]),
                **_tensor_columns(node["tensor"]),
                module=row.module if row else None,
                sequence_nr=row.sequence if row else None,
                stack=row.stack if row else None,
            )


def _tensors(value):
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)


def _tensor_columns(value):
    if value is None:
        return {}
    many = isinstance(value, list)
    tensors = value if many else [value]
    if not tensors:
        return {}
    shapes = [list(t.shape) for t in tensors]
    strides = [list(t.stride()) for t in tensors]
    return {
        "shape_json": compact(shapes if many else shapes[0]),
        "stride_json": compact(strides if many else strides[0]),
        "dtype": str(tensors[0].dtype).removeprefix("torch."),
        "device": str(tensors[0].device),
    }
