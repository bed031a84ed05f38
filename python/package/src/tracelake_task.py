"""One task of an engine: the program over one input, and what came of it.

The engine schedules, repeats, replaces lost machines and starts copies of slow
tasks. A task may run any number of times, also at the same time: what is
committed already stays as it is. Needs nothing but the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import typing

# The columns of the catalog: a row for each input.
COLUMNS = {
    "path": "string",
    "unit": "string",  # what was converted: the input, or the output of the job of collect it belongs to
    "status": "string",  # ok, rejected (no trace, whoever reads it), failed (not in the dataset; tried as often as allowed)
    "outcome": "string",  # as in traces
    "reason": "string",
    "trace_id": "string",
    "run": "string",
    "rank": "bigint",
    "bytes": "bigint",
    "events": "bigint",
    "gpu_events": "bigint",
    "seconds": "double",
    "host": "string",
    "attempt": "int",
}

Row = dict[str, typing.Any]

# Small inputs share a task up to this size.
TASK_BYTES = 64 << 20


class Failed(RuntimeError):
    """An input is not in the dataset for a reason that may go away: try again."""


class Unusable(RuntimeError):
    """The program refused all of the inputs, or the dataset."""

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code


def is_url(path: str) -> bool:
    return "://" in path


def absolute(path: str) -> str:
    """A path that means the same on every machine that shares it."""
    return path if is_url(path) else os.path.abspath(path)


def clean(path: str) -> str:
    """A URL without its parameters, which no dataset and no message holds."""
    return path.partition("?")[0] if is_url(path) else path


def addressed(unit: str, inputs: typing.Iterable[str]) -> str:
    """What the program reads a unit by: a URL has the parameters of the input that it was found in."""
    if not is_url(unit):
        return unit
    found = max((x for x in inputs if unit.startswith(re.split(r"[?*\[]", x, maxsplit=1)[0])), key=len, default="")
    _, mark, parameters = found.partition("?")
    return unit + mark + parameters


def split_words(argv: typing.Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments of a driver, and behind -- the flags of the program."""
    words = list(argv)
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def parser(prog: str, engine: str) -> argparse.ArgumentParser:
    """What every driver asks for."""
    p = argparse.ArgumentParser(prog=prog, description=f"Converts traces on {engine}. What follows -- are flags of tracelake convert.")
    p.add_argument("inputs", nargs="+", metavar="INPUT", help="files, directories, globs or URLs, the same on every machine")
    p.add_argument("-o", "--output", required=True, metavar="LAKE", help="the dataset, the same on every machine")
    p.add_argument(
        "--task-bytes", type=int, default=TASK_BYTES, metavar="N", help="small inputs share a task up to this size (default 64 MiB)"
    )
    p.add_argument("--timeout", type=float, metavar="S", help="end an attempt at an input after S seconds; it is tried again")
    return p


def find_program(name: str = "") -> str:
    """The program: the one named, TRACELAKE_BIN, that of the tracelake package, or the one on PATH."""
    named = name or os.environ.get("TRACELAKE_BIN", "")
    if named:
        return os.path.abspath(named)
    try:
        import tracelake

        return tracelake.binary()
    except ImportError:
        found = shutil.which("tracelake")
    if not found:
        raise FileNotFoundError(f"{socket.gethostname()}: no tracelake on PATH; install its wheel there or name a program to ship")
    return found


class Listing(typing.NamedTuple):
    """The inputs as the dataset knows them."""

    reports: list[Row]  # one per input
    notices: list[str]  # about the runs

    @property
    def units(self) -> dict[str, int]:
        """What is to be converted, with its size in bytes."""
        size: dict[str, int] = {}
        todo = set()
        for r in self.reports:
            size[r["unit"]] = size.get(r["unit"], 0) + max(r["bytes"], 0)
            if not r.get("skipped"):
                todo.add(r["unit"])
        return {u: n for u, n in size.items() if u in todo}

    @property
    def done(self) -> list[Row]:
        """Rows of the inputs that the dataset holds."""
        return [_row(r, r["unit"], 0) for r in self.reports if r.get("skipped")]


def list_inputs(program: str, inputs: typing.Iterable[str], lake: str, flags: typing.Sequence[str] = ()) -> Listing:
    """Asks which inputs there are and which the dataset holds, and makes the dataset."""
    inputs = [absolute(x) for x in inputs]
    words = [program, "convert", "--list", "--json", "-o", absolute(lake), *flags, "--", *inputs]
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode not in (0, 3):
        raise Unusable(done.returncode, _last(done.stderr) or f"tracelake ended with exit code {done.returncode}")
    lines = [json.loads(x) for x in done.stdout.splitlines()]
    for r in lines[:-1]:
        r["unit"] = addressed(r["unit"], inputs)
    return Listing(lines[:-1], lines[-1]["summary"]["notices"] or [])


def groups(units: dict[str, int], size: int, most: int = 64) -> list[list[str]]:
    """Tasks, the largest first: units that together have about the given size, so that small ones share the start of a task."""
    out: list[list[str]] = []
    filled = size
    for unit, n in sorted(units.items(), key=lambda x: (-x[1], x[0])):
        if filled >= size or len(out[-1]) >= most:
            out.append([])
            filled = 0
        out[-1].append(unit)
        filled += n
    return out


def convert(
    program: str, unit: str, lake: str, flags: typing.Sequence[str] = (), timeout: float | None = None, attempt: int = 0
) -> list[Row]:
    """Converts one unit and returns the rows of its inputs. Raises Failed where another attempt may do better.

    The program stops when this process ends.
    """
    words = [program, "convert", "--json", "--quiet", "--member", "--die-with", str(os.getpid()), "-o", lake, *flags, "--", unit]
    try:
        done = subprocess.run(words, capture_output=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"{clean(unit)}: not done after {timeout:g} s") from None
    if done.returncode not in (0, 3):
        how = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        raise Failed(f"{clean(unit)}: {how}: {_last(done.stderr)}")
    reports = [json.loads(x) for x in done.stdout.splitlines()][:-1]
    for r in reports:
        if r.get("failed"):
            raise Failed(f"{r['path']}: {r['failed']}")
    return [_row(r, unit, attempt) for r in reports]


def failed(unit: str, why: Exception, attempt: int) -> Row:
    """The row of a unit that was tried as often as the engine allows."""
    row = dict.fromkeys(COLUMNS)
    row.update(path=clean(unit), unit=clean(unit), status="failed", reason=str(why)[:1000], host=socket.gethostname(), attempt=attempt)
    return row


def _row(report: Row, unit: str, attempt: int) -> Row:
    row = {name: report.get(name) for name in COLUMNS}
    row.update(unit=clean(unit), status="rejected" if report["outcome"] == "rejected" else "ok", host=socket.gethostname(), attempt=attempt)
    return row


def _last(stderr: bytes) -> str:
    return stderr[-2000:].decode(errors="replace").strip()
