"""Profiler traces as tables: a thin module over the tracelake program.

    tracelake.convert("traces/", "lake")
    lake = tracelake.open("lake")
    lake.kernels(top=5)

The program does the work; nothing is downloaded and nothing runs in this
process but the readers of Parquet files.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import typing

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

__all__ = ["Conversion", "Error", "Lake", "binary", "convert", "open"]

try:
    __version__ = importlib.metadata.version("tracelake")
except importlib.metadata.PackageNotFoundError:  # run from the sources
    __version__ = "0.0.0"

PathLike = typing.Union[str, "os.PathLike[str]"]


class Error(RuntimeError):
    """The program failed. `code` is its exit code, the text is what it printed."""

    def __init__(self, code: int, text: str):
        super().__init__(text or f"tracelake ended with exit code {code}")
        self.code = code


def binary() -> str:
    """The path of the program: TRACELAKE_BIN, that of this package, or the one on PATH."""
    named = os.environ.get("TRACELAKE_BIN")
    if named:
        return named
    ours = pathlib.Path(sysconfig.get_path("scripts")) / "tracelake"
    found = str(ours) if ours.is_file() else shutil.which("tracelake")
    if not found:
        raise FileNotFoundError("the tracelake program is not installed beside this module nor on PATH; set TRACELAKE_BIN")
    return found


def _run(args: list[str], accept: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess:
    done = subprocess.run([binary(), *args], capture_output=True, check=False)
    if done.returncode not in accept:
        raise Error(done.returncode, done.stderr.decode(errors="replace").strip())
    return done


def _flags(options: dict[str, typing.Any]) -> list[str]:
    """Turns keyword arguments into flags: max_memory="2GiB" is --max-memory=2GiB."""
    out = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        for v in value if isinstance(value, (list, tuple)) else [value]:
            out.append(flag if v is True else f"{flag}={v}")
    return out


class Conversion(typing.NamedTuple):
    """What became of the inputs of `convert`."""

    reports: list[dict]  # one per input: path, outcome, trace_id, rows, diagnostics, …
    summary: dict  # counts by outcome, events, bytes

    @property
    def ok(self) -> bool:
        """Whether every input is in the dataset, whole."""
        s = self.summary
        return not (s["partial"] or s["rejected"] or s["failed"])


def convert(inputs: PathLike | typing.Iterable[PathLike], output: PathLike, **options) -> Conversion:
    """Imports trace files and directories into the dataset at `output`.

    Options are the flags of `tracelake convert`, such as run="a", jobs=4,
    force=True. Inputs that are broken do not raise: see `Conversion.ok` and
    the reports. Raises `Error` where nothing could be done at all.
    """
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    paths = [os.fspath(p) for p in inputs]
    args = ["convert", "--json", "-o", os.fspath(output), *_flags(options), "--", *paths]
    lines = [json.loads(x) for x in _run(args, accept=(0, 3)).stdout.splitlines()]
    return Conversion(lines[:-1], lines[-1]["summary"])


def open(lake: PathLike) -> Lake:
    """Opens a dataset that `convert` wrote."""
    return Lake(lake)


class Lake:
    """A dataset. Tables are described in the data dictionary of tracelake.

    Times are nanoseconds and integers; a column that may be null stays exact
    in every frame.
    """

    def __init__(self, path: PathLike):
        self.path = pathlib.Path(path)
        if not (self.path / "_tracelake" / "format.json").is_file():
            raise FileNotFoundError(f"{self.path} is not a tracelake dataset")

    def __repr__(self) -> str:
        return f"tracelake.open({str(self.path)!r})"

    @property
    def tables(self) -> list[str]:
        """The tables that have rows."""
        return sorted(p.name for p in self.path.iterdir() if p.is_dir() and not p.name.startswith(("_", ".")))

    def _dataset(self, table: str) -> ds.Dataset:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", table):
            raise ValueError(f"{table!r} is no name of a table")
        if table not in self.tables:
            raise KeyError(f"table {table!r} has no rows in {self.path}; there are {', '.join(self.tables)}")
        keys = pa.schema([("run", pa.string()), ("rank", pa.int64())])
        hive = None if table == "traces" else ds.partitioning(keys, flavor="hive")
        return ds.dataset(str(self.path / table), format="parquet", partitioning=hive)

    def arrow(self, table: str, columns: list[str] | None = None, where=None) -> pa.Table:
        """The table as a pyarrow table. `where` is a pyarrow expression."""
        return self._dataset(table).to_table(columns=columns, filter=where)

    def pandas(self, table: str, columns: list[str] | None = None, where=None):
        """The table as a pandas frame with Arrow types, which keep integers beside nulls exact."""
        return _to_pandas(self.arrow(table, columns, where))

    def polars(self, table: str):
        """The table as a polars LazyFrame."""
        import polars as pl

        return pl.scan_pyarrow_dataset(self._dataset(table))

    def duckdb(self):
        """A DuckDB connection with a view per table and the macros of tracelake."""
        return self._connection

    @functools.cached_property
    def _connection(self):
        import duckdb

        con = duckdb.connect()
        con.execute(_run(["views", str(self.path)]).stdout.decode())
        return con

    def sql(self, query: str, **parameters):
        """Runs SQL in the DuckDB of this process and returns a relation."""
        return self.duckdb().sql(query, params=parameters or None)

    @functools.cached_property
    def analyses(self) -> dict[str, str]:
        """The analyses by name, with what they answer."""
        found = re.findall(r"^  (\S+) +(.+)$", _run(["analyze", "--list"]).stdout.decode(), re.M)
        return dict(found)

    def analyze(self, name: str, **options):
        """Runs an analysis of `tracelake analyze` and returns its rows as a frame.

        Options are its flags: run, rank, device, iteration, top, by, …
        """
        args = ["analyze", name, str(self.path), "--format=parquet", *_flags(options)]
        table = pq.read_table(pa.BufferReader(_run(args).stdout))
        try:
            return _to_pandas(table)
        except ImportError:
            return table

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        analysis = next((n for n in self.analyses if name in (n, n.replace("-", "_"))), None)
        if analysis is None:
            raise AttributeError(f"a dataset has no {name!r}; analyses are {', '.join(self.analyses)}")

        def run(**options):
            return self.analyze(analysis, **options)

        run.__name__, run.__doc__ = name, self.analyses[analysis]
        return run

    def __dir__(self):
        return [*super().__dir__(), *(n.replace("-", "_") for n in self.analyses)]


def _to_pandas(table: pa.Table):
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)
