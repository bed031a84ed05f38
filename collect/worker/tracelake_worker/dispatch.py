"""Records every operator that reaches the dispatcher, in order."""

import os
import sys

from .tables import compact

STACK_FRAMES = 8
MAX_LIST = 64
NO_SEQUENCE = 1 << 63  # nodes that no operator made, such as gradient sums, carry 2^64-1
TORCH_DIRECTORIES = (os.sep + "torch" + os.sep, os.sep + "tracelake_worker" + os.sep)


class Row:
    """One operator that ran."""

    __slots__ = (
        "index",
        "step",
        "phase",
        "func",
        "inputs",
        "outputs",
        "kwargs",
        "in_bytes",
        "out_bytes",
        "flops",
        "module",
        "stack",
        "sequence",
        "refs",
        "made",
    )

    def __init__(self, index):
        self.index = index

    @property
    def name(self):
        return f"{self.func.namespace}::{self.func._schema.name.partition('::')[2]}"

    @property
    def overload(self):
        return self.func._overloadname


def recorder(step, modules=None, stacks=True, graph=None):
    """A dispatch mode that collects Rows. step says the phase, modules where in
    the model it is, graph takes the flow of tensors."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    formulas = _formulas()
    scalar = torch.ops.aten._local_scalar_dense.default

    class Recorder(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.rows = []
            self.modules_by_sequence = {}
            self.assumed = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if func is scalar and args[0].is_meta:
                # The value of a tensor that has none. Models ask whether a mask
                # hides anything, whether sequences are packed: the plain case
                # answers no.
                self.assumed += 1
                out = {torch.bool: False}.get(args[0].dtype, 0.0 if args[0].is_floating_point() else 0)
            else:
                out = func(*args, **kwargs)
            if func.namespace == "profiler":  # the step's own range markers
                return out
            row = Row(len(self.rows))
            row.func = func
            row.step = step.count - 1
            row.phase = step.phase
            row.inputs = [_value(a) for a in args]
            row.kwargs = {k: _value(v) for k, v in kwargs.items()}
            row.outputs = [_value(o) for o in (out if isinstance(out, (list, tuple)) else (out,))]
            row.in_bytes = _bytes(list(args) + list(kwargs.values()))
            row.out_bytes = _bytes([out])
            row.flops = _flops(formulas, func, args, kwargs, out)
            row.sequence = self._sequence(args, row)
            row.module = self._module(row)
            row.stack = _stack() if stacks else None
            if graph is not None:
                graph.add(row, args, kwargs, out)
            self.rows.append(row)
            return out

        def _sequence(self, args, row):
            """The number that autograd gave the operator, or the operator whose
            backward this is."""
            node = torch._C._current_autograd_node()
            if node is not None:
                number = node._sequence_nr()
                return number if number < NO_SEQUENCE else None
            if (
                row.phase == "forward"
                and torch.is_grad_enabled()
                and any(isinstance(t, torch.Tensor) and t.requires_grad for t in _flat(args))
            ):
                return torch._C._autograd._get_sequence_nr() - 1
            return None

        def _module(self, row):
            if row.phase == "backward":
                return self.modules_by_sequence.get(row.sequence)
            path = modules.current if modules is not None else None
            if path is not None and row.sequence is not None:
                self.modules_by_sequence[row.sequence] = path
            return path

    return Recorder()


class ModulePath:
    """Knows which module of the model runs now."""

    def __init__(self, model):
        self._names = {id(m): name for name, m in model.named_modules()}
        self._model = model
        self._stack = []
        self._handles = []

    @property
    def current(self):
        return self._stack[-1] if self._stack else None

    def __enter__(self):
        for module in self._model.modules():
            name = self._names[id(module)] or type(module).__name__
            self._handles.append(module.register_forward_pre_hook(lambda _m, _a, name=name: self._stack.append(name)))
            self._handles.append(module.register_forward_hook(self._leave, always_call=True))
        return self

    def _leave(self, _module, _args, _output):
        # Whatever a hook returns would stand for the module's output.
        if self._stack:
            self._stack.pop()

    def __exit__(self, *exc):
        for handle in self._handles:
            handle.remove()
        return False


def _flat(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        elif isinstance(value, dict):
            yield from _flat(value.values())
        else:
            yield value


def _value(value):
    import torch

    if isinstance(value, torch.Tensor):
        strided = value.layout == torch.strided
        return {
            "shape": list(value.shape),
            "dtype": str(value.dtype).removeprefix("torch."),
            "stride": list(value.stride()) if strided else None,
            "device": str(value.device),
        }
    if isinstance(value, (list, tuple)):
        return [_value(v) for v in value[:MAX_LIST]]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    return str(value)[:200]


def _bytes(values):
    import torch

    return sum(v.numel() * v.element_size() for v in _flat(values) if isinstance(v, torch.Tensor))


def _formulas():
    """torch's own FLOP formulas, and the same ones for the CPU's fused attention,
    which its registry leaves out."""
    import torch
    from torch.utils import flop_counter

    formulas = dict(flop_counter.flop_registry)
    aten = torch.ops.aten
    for name, formula in (
        ("_scaled_dot_product_flash_attention_for_cpu", "sdpa_flop"),
        ("_scaled_dot_product_flash_attention_for_cpu_backward", "sdpa_backward_flop"),
        ("_scaled_dot_product_fused_attention_overrideable", "sdpa_flop"),
    ):
        packet = getattr(aten, name, None)
        found = getattr(flop_counter, formula, None)
        if packet is not None and found is not None:
            formulas.setdefault(packet, found)
    grouped = getattr(aten, "_grouped_mm", None)
    if grouped is not None:
        formulas.setdefault(grouped, _grouped_mm_flops)
    return formulas


def _grouped_mm_flops(left, right, *_args, **_kwargs):
    """Rows of all experts at once: each row meets one expert's matrix."""
    if left.dim() != 2 or right.dim() != 3:
        raise ValueError("no formula for this form")
    return 2 * left.shape[0] * left.shape[1] * right.shape[2]


def _flops(registry, func, args, kwargs, out):
    formula = registry.get(func.overloadpacket)
    if formula is None:
        return None
    try:
        return int(formula(*args, **kwargs, out_val=out))
    except Exception:  # a formula that does not know this call's shapes; the operator ran all the same
        return None


def _stack():
    """Lines outside of torch that led here, innermost first."""
    frame = sys._getframe(2)
    out = []
    while frame is not None and len(out) < STACK_FRAMES:
        name = frame.f_code.co_filename
        if not any(d in name for d in TORCH_DIRECTORIES) and not name.startswith("<"):
            out.append(f"{_short(name)}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return "\n".join(out) or None


def _short(path):
    _, found, rest = path.rpartition("site-packages" + os.sep)
    return rest if found else path


def record(ctx, graph=None, stacks=True, warmup=0):
    """Runs the step under a recorder; its rows."""
    if warmup:
        ctx.phase("warmup")
        for _ in range(warmup):
            ctx.step()
    ctx.phase("trace")
    with ModulePath(ctx.model) as modules:
        mode = recorder(ctx.step, modules, stacks, graph)
        with mode:
            ctx.step()
    if mode.assumed:
        ctx.details["assumed_values"] = mode.assumed
    return mode.rows


def write_ops(ctx, rows):
    first = rows[0].step if rows else 0
    with ctx.table("ops") as table:
        for row in rows:
            table.row(
                op_index=row.index,
                step=row.step - first,
                phase=row.phase,
                name=row.name,
                overload=row.overload,
                inputs_json=compact(row.inputs),
                outputs_json=compact(row.outputs),
                kwargs_json=compact(row.kwargs),
                input_bytes=row.in_bytes,
                output_bytes=row.out_bytes,
                flops=row.flops,
                module=row.module,
                stack=row.stack,
                sequence_nr=row.sequence,
            )


def totals(rows):
    """For the result line."""
    phases = {}
    for row in rows:
        phases[row.phase or "none"] = phases.get(row.phase or "none", 0) + 1
    return {"ops": len(rows), "ops_by_phase": phases, "flops": sum(r.flops or 0 for r in rows)}
