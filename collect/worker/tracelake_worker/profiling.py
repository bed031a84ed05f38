"""Runs steps under torch.profiler and keeps its file, compressed, once."""

import contextlib
import os
import socket
import time


def activities(torch, device):
    kinds = [torch.profiler.ProfilerActivity.CPU]
    extra = {"cuda": "CUDA", "xpu": "XPU", "mtia": "MTIA"}.get(device.type)
    if extra:
        kinds.append(getattr(torch.profiler.ProfilerActivity, extra))
    return kinds


def trace_name():
    return f"{socket.gethostname()}_{os.getpid()}.{time.time_ns()}.pt.trace.json.gz"


def synchronize(device):
    import torch

    if device.type != "cpu":
        getattr(torch, device.type).synchronize(device)


def run(ctx, step, warmup=1, active=1, with_stack=True, memory=True, flops=True, observer=None):
    """(profiler, path of the trace relative to the output directory)."""
    import torch
    from torch.profiler import profile, schedule

    relative = os.path.join("trace", trace_name())
    full = ctx.path(relative)
    options = {}
    if with_stack:
        # Without it the Python frames are not written to the file.
        config = getattr(torch._C._profiler, "_ExperimentalConfig", None)
        if config is not None:
            options["experimental_config"] = config(verbose=True)
    if observer is not None:
        options["execution_trace_observer"] = observer
    ready = []

    def export(p):
        synchronize(ctx.device)
        with temporary_directory(os.path.dirname(full)):
            p.export_chrome_trace(full)
        ready.append(full)

    with profile(
        activities=activities(torch, ctx.device),
        schedule=schedule(wait=0, warmup=warmup, active=active, repeat=1),
        on_trace_ready=export,
        record_shapes=True,
        profile_memory=memory,
        with_stack=with_stack,
        with_flops=flops,
        **options,
    ) as p:
        for i in range(warmup + active):
            if i == 0 and warmup:
                ctx.phase("warmup")
            elif i == warmup:
                ctx.phase("trace")
            step()
            synchronize(ctx.device)
            ctx.progress(i + 1, warmup + active, "steps")
            p.step()
    if not ready:
        raise RuntimeError("the profiler wrote no trace")
    ctx.artifact(relative, "trace")
    return p, relative


@contextlib.contextmanager
def temporary_directory(path):
    """The profiler writes the plain file to the temporary directory before it
    compresses it; that may be small, the output directory is not."""
    import tempfile

    before, tempfile.tempdir = tempfile.tempdir, path
    try:
        yield
    finally:
        tempfile.tempdir = before
