"""Runs one tracer on one model and reports over a line protocol.

Nothing here imports torch, transformers or vllm when it is imported: listing
tracers works on a machine that has none of them.
"""

from .tables import Column, Table
from .tracer import Context, Tracer

PROTOCOL = 1

__all__ = ["PROTOCOL", "Column", "Context", "Table", "Tracer"]
