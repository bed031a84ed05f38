"""The columnar tables that tracers write, one JSON object a row.

The first line of a file declares the table; a key that a row lacks is null.
"""

import json
import os
import re
from dataclasses import dataclass

from .errors import WorkerError

TYPES = ("int64", "float64", "string", "bool")
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}\Z")


@dataclass(frozen=True)
class Column:
    name: str
    type: str = "string"
    unit: str = ""
    doc: str = ""


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple

    def check(self):
        if not NAME.match(self.name):
            raise ValueError(f"table name {self.name!r}: lower-case letters, digits and underscores only")
        seen = set()
        for column in self.columns:
            if not NAME.match(column.name) or column.name in seen:
                raise ValueError(f"table {self.name}: column name {column.name!r} is wrong or used twice")
            if column.type not in TYPES:
                raise ValueError(f"table {self.name}: column {column.name}: type {column.type!r}, want one of {', '.join(TYPES)}")
            seen.add(column.name)
        return self


def _table(name, *columns):
    return Table(name, tuple(Column(*c) for c in columns)).check()


OPS = _table(
    "ops",
    ("op_index", "int64", "", "position in the order in which operators ran, from 0"),
    ("step", "int64", "", "step of the run, from 0"),
    ("phase", "string", "", "forward, backward, optimizer, prefill or decode"),
    ("name", "string", "", "namespace::name of the operator"),
    ("overload", "string", "", "overload of the operator's schema"),
    ("inputs_json", "string", "", "list of {shape, dtype, stride, device} or scalars"),
    ("outputs_json", "string", "", "as inputs_json, for the results"),
    ("kwargs_json", "string", "", "keyword arguments"),
    ("input_bytes", "int64", "bytes", "bytes of all input tensors' elements"),
    ("output_bytes", "int64", "bytes", "bytes of all output tensors' elements"),
    ("flops", "int64", "", "floating-point operations by formula; null where there is none"),
    ("module", "string", "", "path of the module that ran it"),
    ("stack", "string", "", "source lines that led to it, innermost first"),
    ("sequence_nr", "int64", "", "autograd's sequence number, shared by an operator and its backward"),
    ("record_id", "int64", "", "Record function id of the profiler, rf_id of an execution trace"),
    ("external_id", "int64", "", "External id of the profiler"),
    ("parent_index", "int64", "", "op_index of the operator that called it"),
    ("dur_ns", "int64", "ns", "host time; null where not measured"),
)

GRAPH_NODES = _table(
    "graph_nodes",
    ("graph_id", "string", "", "kind/number of the graph"),
    ("graph_kind", "string", "", "dynamo, aot_forward, aot_backward, aot_inference, inductor, export or meta"),
    ("graph_index", "int64", "", "number of the graph within its kind"),
    ("node_index", "int64", "", "position in the graph"),
    ("node", "string", "", "name of the FX node"),
    ("op", "string", "", "placeholder, get_attr, call_function, call_module, call_method or output"),
    ("target", "string", "", "what is called or read"),
    ("args_json", "string", "", "arguments; nodes as {node: name}"),
    ("kwargs_json", "string", "", "keyword arguments"),
    ("users_json", "string", "", "names of the nodes that use the result"),
    ("shape_json", "string", "", "shape of the result, or a list of shapes"),
    ("dtype", "string", "", "dtype of the result"),
    ("stride_json", "string", "", "strides of the result, or a list of them"),
    ("device", "string", "", "device of the result"),
    ("module", "string", "", "path of the module that it came from"),
    ("original_aten", "string", "", "the ATen operator before decomposition"),
    ("sequence_nr", "int64", "", "autograd's sequence number"),
    ("partitioner_tag", "string", "", "which half of a joint graph it belongs to"),
    ("from_graph_id", "string", "", "graph of the node that it was made from"),
    ("from_node", "string", "", "node that it was made from"),
    ("stack", "string", "", "source lines that led to it"),
)

GRAPH_BREAKS = _table(
    "graph_breaks",
    ("break_index", "int64", "", "order of the break"),
    ("reason", "string", "", "why the graph ended"),
    ("file", "string", "", "file of the innermost user frame"),
    ("line", "int64", "", "line in it"),
    ("function", "string", "", "function in it"),
    ("user_stack", "string", "", "user frames, outermost first"),
    ("graph_before", "string", "", "graph_id of the graph that it ended"),
)

GUARDS = _table(
    "guards",
    ("guard_index", "int64", "", "order of the guard"),
    ("graph_id", "string", "", "first graph of the compiled frame that it guards"),
    ("guard_type", "string", "", "kind of the check"),
    ("source", "string", "", "what is checked"),
    ("code", "string", "", "the check as code"),
    ("stack", "string", "", "where it was made"),
)

FUSIONS = _table(
    "fusions",
    ("graph_id", "string", "", "inductor/N: the graph that was compiled"),
    ("kernel", "string", "", "name of the generated kernel or extern call"),
    ("node", "string", "", "FX node of that graph that the kernel computes"),
    ("original_aten", "string", "", "the node's ATen operator before decomposition"),
    ("node_order", "int64", "", "position of the node among the kernel's nodes"),
    ("scheduler_node", "string", "", "Inductor scheduler nodes of the kernel"),
    ("reads_json", "string", "", "buffers that the kernel reads"),
    ("writes_json", "string", "", "buffers that the kernel writes"),
)

KERNELS_GENERATED = _table(
    "kernels_generated",
    ("graph_id", "string", "", "inductor/N: the graph that was compiled"),
    ("kernel", "string", "", "name of the kernel; the profile's event of an extern call is in config_json"),
    ("backend", "string", "", "triton, cpp or extern"),
    ("source_path", "string", "", "generated source, relative to the tracer's directory"),
    ("source_digest", "string", "", "SHA-256 of the kernel's own source text"),
    ("original_aten_json", "string", "", "ATen operators that it computes"),
    ("nodes_json", "string", "", "FX nodes that it computes"),
    ("num_warps", "int64", "", "warps of a Triton launch"),
    ("num_stages", "int64", "", "pipeline stages of a Triton launch"),
    ("shared_bytes", "int64", "bytes", "shared memory of a Triton launch"),
    ("config_json", "string", "", "whatever else the backend says"),
    ("line", "int64", "", "line of source_path where the kernel begins"),
)

KNOWN = {t.name: t for t in (OPS, GRAPH_NODES, GRAPH_BREAKS, GUARDS, FUSIONS, KERNELS_GENERATED)}


def compact(value):
    return json.dumps(value, separators=(",", ":"), default=str)


class TableWriter:
    """Appends rows to tables/NAME.jsonl. Use it in a with block."""

    def __init__(self, table, directory, tracer, tracer_version):
        self.table = table
        self.rows = 0
        self.path = f"tables/{table.name}.jsonl"
        self._types = {c.name: c.type for c in table.columns}
        full = os.path.join(directory, self.path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        self._file = open(full, "w", encoding="utf-8", errors="backslashreplace", newline="\n")  # noqa: SIM115
        columns = [{"name": c.name, "type": c.type, "unit": c.unit, "doc": c.doc} for c in table.columns]
        head = {"table": table.name, "columns": columns, "tracer": tracer, "tracer_version": tracer_version}
        self._file.write(compact(head) + "\n")

    def row(self, **values):
        out = {}
        for name, value in values.items():
            if value is None:
                continue
            kind = self._types.get(name)
            if kind is None:
                raise WorkerError("tracer", f"table {self.table.name} has no column {name!r}")
            out[name] = _convert(kind, value, self.table.name, name)
        self._file.write(compact(out) + "\n")
        self.rows += 1

    def close(self):
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def _convert(kind, value, table, name):
    try:
        if kind == "string":
            return value if isinstance(value, str) else str(value)
        if kind == "int64":
            number = int(value)
            if not -(1 << 63) <= number < 1 << 63:
                raise ValueError("does not fit in 64 bits")
            return number
        if kind == "float64":
            return float(value) if float(value) - float(value) == 0 else None
        return bool(value)
    except (TypeError, ValueError) as error:
        raise WorkerError("tracer", f"table {table}: column {name}: {value!r} is no {kind}: {error}") from error
