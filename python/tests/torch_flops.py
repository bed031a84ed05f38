"""Asks PyTorch's own FlopCounterMode about operators; runs in an interpreter that has it.

A JSON object per call on stdout: the operator as the profiler records it, and
the FLOPs that the counter gives for it.
"""

import contextlib
import json
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils import flop_counter

torch.manual_seed(1)


def tensor(*shape, dtype=torch.float32, grad=False):
    return torch.randn(shape).to(dtype).requires_grad_(grad)


def convolutions():
    for n, make in ((1, F.conv1d), (2, F.conv2d), (3, F.conv3d)):
        image, kernel = [17, 19, 18][:n], [3, 2, 3][:n]
        yield "aten::convolution", lambda m=make, i=image, k=kernel: m(tensor(2, 64, *i), tensor(96, 64, *k), stride=2, padding=1)
        yield (
            "aten::_convolution",
            lambda m=make, i=image, k=kernel: m(tensor(2, 64, *i), tensor(96, 32, *k), tensor(96), dilation=2, groups=2),
        )
    for n, make in ((1, F.conv_transpose1d), (2, F.conv_transpose2d), (3, F.conv_transpose3d)):
        image, kernel = [17, 19, 18][:n], [3, 2, 3][:n]
        yield (
            "aten::convolution",
            lambda m=make, i=image, k=kernel: m(tensor(2, 64, *i), tensor(64, 96, *k), stride=2, padding=1, output_padding=1),
        )
        yield (
            "aten::_convolution",
            lambda m=make, i=image, k=kernel: m(tensor(2, 64, *i), tensor(64, 48, *k), tensor(96), dilation=2, groups=2),
        )


def products():
    yield "aten::mm", lambda: tensor(50, 70) @ tensor(70, 30)
    yield "aten::mm", lambda: tensor(50, 70, dtype=torch.bfloat16) @ tensor(70, 30, dtype=torch.bfloat16)
    yield "aten::addmm", lambda: F.linear(tensor(50, 70), tensor(30, 70), tensor(30))
    yield "aten::bmm", lambda: torch.bmm(tensor(4, 50, 70), tensor(4, 70, 30))
    yield "aten::baddbmm", lambda: torch.baddbmm(tensor(4, 50, 30), tensor(4, 50, 70), tensor(4, 70, 30))


def backward():
    """The backward passes of convolutions; torch's counter ignores groups in the gradient of a kernel."""
    for make, kernel in ((F.conv2d, (96, 64, 3, 3)), (F.conv_transpose2d, (64, 96, 3, 3))):
        for image_grad, kernel_grad in ((True, True), (False, True), (True, False)):

            def call(m=make, k=kernel, a=image_grad, b=kernel_grad):
                out = m(tensor(2, 64, 9, 9, grad=a), tensor(*k, grad=b), stride=2, padding=1)
                return lambda: out.sum().backward()

            yield "aten::convolution_backward", call()


def measured(op, call):
    """The operator as the profiler records it, and what the counter says of the call."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p, flop_counter.FlopCounterMode(display=False) as counter:
        call()
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "trace.json")
        p.export_chrome_trace(path)
        with open(path) as f:
            events = json.load(f)["traceEvents"]
    # The counter calls operators again under the same name.
    found = [{k: e["args"].get(k) for k in ("Input Dims", "Input type", "Concrete Inputs")} for e in events if e.get("name") == op]
    assert found and all(f == found[0] for f in found), (op, found)
    return {"op": op, "flop": counter.get_total_flops(), **found[0]}


def attention():
    """Attention needs a GPU to be recorded: its formulas, over shapes of our own."""
    q, k, v = [2, 8, 96, 64], [2, 8, 80, 64], [2, 8, 80, 32]
    for kind, at in (("flash", 5), ("efficient", 7), ("cudnn", 7)):
        op = f"aten::_scaled_dot_product_{kind}_attention"
        concrete = [""] * at
        types = ["c10::BFloat16"] * 3
        yield {
            "op": op,
            "flop": flop_counter.sdpa_flop_count(q, k, v),
            "Input Dims": [q, k, v],
            "Input type": types,
            "Concrete Inputs": concrete,
        }
        out = [*q[:3], v[3]]
        yield {
            "op": op + "_backward",
            "flop": flop_counter.sdpa_backward_flop_count(out, q, k, v),
            "Input Dims": [out, q, k, v],
            "Input type": [*types, "c10::BFloat16"],
            "Concrete Inputs": [""] * 15,
        }


def main():
    with contextlib.redirect_stdout(sys.stderr):
        rows = [measured(op, call) for group in (products, convolutions, backward) for op, call in group()]
        rows += attention()
    for row in rows:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
