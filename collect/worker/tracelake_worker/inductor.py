"""Watches Inductor compile: its graphs, the kernels it makes of them, and from
which nodes each kernel was fused."""

import contextlib
import hashlib
import json
import os
import re

from .tables import compact

# Where Inductor tells which scheduler nodes a kernel was made of. Each module
# holds its own name for the one function.
PROVENANCE = "set_kernel_post_grad_provenance_tracing"
PROVENANCE_MODULES = ("torch._inductor.debug", "torch._inductor.codegen.cpp", "torch._inductor.codegen.triton")


class Kernel:
    """A kernel that Inductor made, or an operator that it calls."""

    def __init__(self, graph_id, name, backend, profile_name, debug_path):
        self.graph_id = graph_id
        self.name = name
        self.backend = backend
        self.profile_name = profile_name
        self.debug_path = debug_path
        self.calls = 0
        self.nodes = []
        self.scheduler_nodes = []
        self.reads = []
        self.writes = []

    def extend(self, nodes, scheduler_nodes, reads, writes):
        self.calls += 1
        for mine, more in ((self.nodes, nodes), (self.scheduler_nodes, scheduler_nodes), (self.reads, reads), (self.writes, writes)):
            mine += [x for x in more if x not in mine]


class Watch:
    def __init__(self, ctx, book):
        self.ctx = ctx
        self.book = book
        self.kernels = {}
        self.calls = []
        self.problems = []
        self._compiling = None
        self._graphs = {}
        self._kept = []

    def backend(self, gm, example_inputs):
        from torch._inductor.compile_fx import compile_fx

        self.book.add(gm, "dynamo")
        return compile_fx(gm, example_inputs, inner_compile=self._inner)

    def _inner(self, gm, example_inputs, **kwargs):
        from torch._inductor.compile_fx import compile_fx_inner

        kind = "aot_backward" if kwargs.get("is_backward") else "aot_inference" if kwargs.get("is_inference") else "aot_forward"
        self._compiling = self.book.add(gm, kind)
        self.ctx.progress(len(self.book.graphs), None, "graphs")
        return compile_fx_inner(gm, example_inputs, **kwargs)

    @contextlib.contextmanager
    def hooked(self):
        """Listens to Inductor's own provenance calls while the block runs."""
        import importlib

        undo = []
        # All are looked up before any is changed: a module that is only now
        # imported would take the listener for the original.
        for name in PROVENANCE_MODULES:
            try:
                module = importlib.import_module(name)
                undo.append((module, getattr(module, PROVENANCE)))
            except (ImportError, AttributeError) as error:
                self.problems.append(f"{name} has no {PROVENANCE}: {error}")
        for module, original in undo:
            setattr(module, PROVENANCE, self._listener(original))
        try:
            yield
        finally:
            for module, original in undo:
                setattr(module, PROVENANCE, original)

    def _listener(self, original):
        def listen(schedule, kernel_name, is_extern=False):
            try:
                self._kernel(schedule, kernel_name, is_extern)
            except Exception as error:  # torch's internals differ by version; compiling goes on
                self.problems.append(f"{kernel_name}: {type(error).__name__}: {error}")
            return original(schedule, kernel_name, is_extern)

        return listen

    def _kernel(self, schedule, name, is_extern):
        from torch._inductor.virtualized import V

        graph_id = self._graph_id(V.graph)
        order = {n.name: i for i, n in enumerate(V.graph.module.graph.nodes)}
        debug_path = getattr(V.debug, "_path", None)
        if is_extern:
            nodes = [schedule.origin_node.name] if schedule.origin_node is not None else [o.name for o in schedule.origins]
            scheduler_nodes = [schedule.get_name()]
            reads, writes = _extern_reads(schedule), [schedule.get_name()]
            backend, profile_name = "extern", extern_profile_name(schedule, name)
        else:
            nodes, scheduler_nodes, reads, writes = _fused(schedule)
            backend = "triton" if name.startswith("triton") else "cpp"
            # The C++ kernels' profiler ranges carry the number of the graph.
            number = getattr(V.graph, "graph_id", None)
            profile_name = name if backend == "triton" or number is None else f"graph_{number}_{name}"
        nodes.sort(key=lambda n: order.get(n, len(order)))
        key = (graph_id, name)
        if key not in self.kernels:
            self.kernels[key] = Kernel(graph_id, name, backend, profile_name, debug_path)
        self.kernels[key].extend(nodes, scheduler_nodes, reads, writes)
        self.calls.append((graph_id, name, nodes, scheduler_nodes, reads, writes))

    def _graph_id(self, graph):
        key = id(graph)
        if key not in self._graphs:
            self._kept.append(graph)  # so that no later graph gets its address
            self._graphs[key] = self.book.add(graph.module, "inductor", made_from=self._compiling)
        return self._graphs[key]


def _fused(schedule):
    nodes, names, reads, writes = [], [], [], []
    for scheduled in schedule:
        if getattr(scheduled, "node", None) is None or not hasattr(scheduled, "read_writes"):
            continue  # markers between reductions
        names.append(scheduled.get_name())
        nodes += [o.name for o in scheduled.node.origins if o.name not in nodes]
        writes += [d.name for d in scheduled.read_writes.writes if d.name not in writes]
        reads += [d.name for d in scheduled.read_writes.reads if d.name not in reads]
    return nodes, names, [r for r in reads if r not in writes], writes


def _extern_reads(node):
    reads = []
    for read in getattr(node.get_read_writes(), "reads", ()):
        if read.name not in reads and read.name != node.get_name():
            reads.append(read.name)
    return reads


def extern_profile_name(node, name):
    """The operator under which an extern call stands in a profile."""
    overload = getattr(node, "op_overload", None)
    schema = getattr(overload, "_schema", None)
    if schema is not None:
        return schema.name
    if name.startswith("extern_kernels."):
        return "aten::" + name.removeprefix("extern_kernels.")
    parts = name.removeprefix("torch.ops.").split(".")
    return "::".join(parts[:2]) if name.startswith("torch.ops.") and len(parts) >= 2 else name


def settings(output_dir):
    """Inductor's configuration for a run that explains itself."""
    import torch._inductor.config as config

    wanted = {
        "trace.enabled": True,
        "trace.debug_dir": os.path.join(output_dir, "inductor_dump", "debug"),
        "trace.provenance_tracking_level": 1,
        "trace.graph_diagram": False,
        "cpp.enable_kernel_profile": True,
        "triton.unique_kernel_names": True,
        "force_disable_caches": True,
    }
    return config.patch({k: v for k, v in wanted.items() if _has(config, k)})


def _has(config, dotted):
    holder = config
    for part in dotted.split("."):
        if not hasattr(holder, part):
            return False
        holder = getattr(holder, part)
    return True


METADATA_MAX = 1 << 20
DEFINITION = re.compile(r"^(?P<name>\w+) = async_compile\.(?P<backend>\w+)\(", re.M)


def sources(path):
    """Kernels that a generated program defines: {name: [(line, text)]}. A name
    may be defined more than once; all of it is kept."""
    try:
        with open(path, encoding="utf-8") as f:
            code = f.read()
    except OSError:
        return {}
    found = {}
    for match in DEFINITION.finditer(code):
        end = code.find("\n''')", match.start())
        one_line = code.find("\n", match.start())
        end = end if end >= 0 else (one_line if one_line >= 0 else len(code))
        line = code.count("\n", 0, match.start()) + 1
        found.setdefault(match["name"], []).append((line, code[match.start() : end]))
    return found


def triton_metadata(directory):
    """What Triton wrote about each compiled kernel: {name: [(path, metadata)]}.
    Variants of one name, by shape or by autotuning, are all kept."""
    found = {}
    for folder, _, names in os.walk(directory):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.endswith(".json") or name.startswith("__grp__") or os.path.getsize(path) > METADATA_MAX:
                continue
            try:
                with open(path, encoding="utf-8") as f:
                    meta = json.load(f)
            except (OSError, ValueError):
                continue
            if isinstance(meta, dict) and "num_warps" in meta:
                found.setdefault(str(meta.get("name") or name.removesuffix(".json")), []).append((path, meta))
    return found


def write_tables(ctx, watch):
    """fusions and kernels_generated; the rows of the seed's kernel file."""
    aten = {(g["graph_id"], r["node"]): r["original_aten"] for g in watch.book.graphs for r in g["nodes"]}
    with ctx.table("fusions") as table:
        order = {}
        for graph_id, name, nodes, scheduler_nodes, reads, writes in watch.calls:
            for node in nodes:
                position = order.get((graph_id, name), 0)
                order[graph_id, name] = position + 1
                table.row(
                    graph_id=graph_id,
                    kernel=name,
                    node=node,
                    original_aten=aten.get((graph_id, node)),
                    node_order=position,
                    scheduler_node=" ".join(scheduler_nodes),
                    reads_json=compact(reads),
                    writes_json=compact(writes),
                )
    compiled = triton_metadata(os.path.join(ctx.output_dir, "inductor_dump"))
    report = []
    with ctx.table("kernels_generated") as table:
        for kernel in watch.kernels.values():
            report += _write_kernel(ctx, table, kernel, aten, compiled)
    return report


def _write_kernel(ctx, table, kernel, aten, compiled):
    program = os.path.join(kernel.debug_path, "output_code.py") if kernel.debug_path else None
    relative = os.path.relpath(program, ctx.output_dir) if program and os.path.exists(program) else None
    texts = (sources(program).get(kernel.name) if relative else None) or [(None, None)]
    originals = list(dict.fromkeys(a for a in (aten.get((kernel.graph_id, n)) for n in kernel.nodes) if a))
    report = []
    for line, text in texts:
        for path, meta in compiled.get(kernel.name) or [(None, {})]:
            config = {"profile_name": kernel.profile_name, "calls": kernel.calls, **meta}
            table.row(
                graph_id=kernel.graph_id,
                kernel=kernel.name,
                backend=kernel.backend,
                source_path=relative if text else None,
                source_digest=hashlib.sha256(text.encode()).hexdigest() if text else None,
                original_aten_json=compact(originals),
                nodes_json=compact(kernel.nodes),
                num_warps=meta.get("num_warps"),
                num_stages=meta.get("num_stages"),
                shared_bytes=meta.get("shared"),
                config_json=compact(config),
                line=line,
            )
            if kernel.backend != "extern":
                report.append(
                    {
                        "kernel_name": kernel.name,
                        "ptx": _beside(ctx, path, ".ptx"),
                        "cubin": _beside(ctx, path, ".cubin"),
                        "launch_config": meta or None,
                        "backend": kernel.backend,
                        "graph_id": kernel.graph_id,
                        "source": relative,
                        "line": line,
                    }
                )
    return report


def _beside(ctx, path, suffix):
    if path is None:
        return None
    other = path.removesuffix(".json") + suffix
    return os.path.relpath(other, ctx.output_dir) if os.path.exists(other) else None
