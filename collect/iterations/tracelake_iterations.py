"""Marks iterations in profiles, so that GPU work can be attributed to them.

Wrap the CPU code that launches the work of one iteration:

    from tracelake_iterations import iteration

    for step, batch in enumerate(batches):
        with iteration(step, producer="train"):
            train_step(batch)

or a function each call of which is an iteration:

    train_step = marked(train_step, producer="train")

Work counts for an iteration if the call that launches it lies inside the range,
on the same thread; PyTorch records ranges only of the threads that it profiles.
While no profiler runs, a range costs about a microsecond.
nvtx=True also pushes an NVTX range, for Nsight Systems.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading

PREFIX = "stormlog.iteration/"


def range_name(iteration_id, producer="loop"):
    """Returns the name of the range that marks an iteration of a producer."""
    producer, iteration_id = str(producer), str(iteration_id)
    if not producer or "/" in producer:
        raise ValueError("a producer is a name without slashes")
    if not iteration_id or "\r" in iteration_id or "\n" in iteration_id:
        raise ValueError("an iteration is a text without line breaks")
    return f"{PREFIX}{producer}/{iteration_id}"


@contextlib.contextmanager
def iteration(iteration_id, producer="loop", nvtx=False):
    """Marks the code inside as an iteration. Without PyTorch it does nothing."""
    name = range_name(iteration_id, producer)
    try:
        import torch
    except ImportError:
        yield
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.profiler.record_function(name))
        if nvtx and torch.cuda.is_available():
            stack.enter_context(torch.cuda.nvtx.range(name.replace("{", "{{").replace("}", "}}")))
        yield


def marked(function, producer="loop", nvtx=False):
    """Returns the function with each call marked as an iteration, from 0."""
    numbers, lock = itertools.count(), threading.Lock()

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with lock:
            number = next(numbers)
        with iteration(number, producer, nvtx):
            return function(*args, **kwargs)

    return wrapper
