"""Read a trace with polars and a declared schema; write Parquet.

polars reads the document as one row whose cell is the list of events. As with
DuckDB, arguments without a column are lost and times are doubles.
"""

import argparse

import polars as pl

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("trace")
parser.add_argument("output")
arguments = parser.parse_args()

INTEGERS = (
    "External id",
    "correlation",
    "cbid",
    "device",
    "context",
    "registers per thread",
    "shared memory",
    "graph id",
    "graph node id",
    "bytes",
    "Python id",
    "Python parent id",
    "Ev Idx",
)
ARGS = dict.fromkeys(INTEGERS, pl.Int64)
ARGS |= {"grid": pl.List(pl.Int64), "block": pl.List(pl.Int64)}
ARGS["stream"] = pl.String  # AMD writes text
ARGS |= {"Input Dims": pl.List(pl.List(pl.Int64)), "Input type": pl.List(pl.String)}
EVENT = dict.fromkeys(("ph", "cat", "name", "pid", "tid"), pl.String)
EVENT |= {"ts": pl.Float64, "dur": pl.Float64, "id": pl.Int64, "args": pl.Struct(ARGS)}

document = pl.read_json(arguments.trace, schema={"traceEvents": pl.List(pl.Struct(EVENT))})
events = document.explode("traceEvents").unnest("traceEvents").unnest("args")
events.write_parquet(arguments.output)
print(events.height, "rows")
