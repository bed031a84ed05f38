"""Reads files with pyarrow, pandas, polars and DuckDB and compares them with
truth.json: every value, null counts, and counts under filters that let the
readers skip row groups and pages by their statistics."""

import json
import math
import os
import random
import struct
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

failures = []


def check(condition, *what):
    if not condition:
        failures.append(" ".join(str(w)[:300] for w in what))


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", int(bits)))[0]


def truth_values(kind, values):
    if kind == "float64":
        return [None if v is None else double(v) for v in values]
    if kind.startswith("list"):
        return [None if v is None else [{"offset_ns": o, "dur_ns": d} for o, d in v] for v in values]
    return values


def same(kind, got, want):
    if len(got) != len(want):
        return f"{len(got)} rows, want {len(want)}"
    for row, (g, w) in enumerate(zip(got, want)):
        if g is pd.NA:
            g = None
        if hasattr(g, "tolist"):
            g = g.tolist()
        if kind == "float64" and g is not None and w is not None:
            ok = math.isnan(g) and math.isnan(w) or struct.pack("<d", g) == struct.pack("<d", w)
        else:
            ok = g == w
        if not ok:
            return f"row {row}: {g!r}, want {w!r}"
    return None


def literal(kind, v):
    if kind == "string":
        return "'" + v.replace("'", "''") + "'"
    if kind == "float64":
        return f"'{v!r}'::DOUBLE"
    return str(v)


def order(v):
    """DuckDB sorts NaN behind everything else."""
    if isinstance(v, float):
        return (1, 0.0) if math.isnan(v) else (0, v)
    return v


def read_all(path, parquet, name_kinds):
    """Yields reader and columns."""
    if parquet:
        table = pq.read_table(path)
        frame = pd.read_parquet(path, dtype_backend="pyarrow")
        polar = pl.read_parquet(path)
    else:
        table = pa.ipc.open_file(path).read_all()
        frame = pd.read_feather(path, dtype_backend="pyarrow")
        polar = pl.read_ipc(path)
    yield "pyarrow", {n: table[n].to_pylist() for n in name_kinds}
    yield "pandas", {n: frame[n].to_list() for n in name_kinds}
    yield "polars", {n: polar[n].to_list() for n in name_kinds}
    duck = (duckdb.read_parquet(path) if parquet else duckdb.from_arrow(table)).to_arrow_table()
    yield "duckdb", {n: duck[n].to_pylist() for n in name_kinds}


def check_types(path, truth, schema):
    want = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string(), "bool": pa.bool_()}
    for name, kind in truth["Types"].items():
        field = schema.field(name)
        check(field.nullable != truth["Required"][name], path, name, "nullable", field.nullable)
        if kind in want:
            check(field.type == want[kind], path, name, field.type)
        else:
            check(pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type), path, name, field.type)


def check_statistics(path, truth, values):
    meta = pq.ParquetFile(path).metadata
    check(meta.num_rows == truth["Rows"], path, meta.num_rows, "rows")
    check(meta.created_by == "tracelake", path, meta.created_by)
    first = 0
    for g in range(meta.num_row_groups):
        group = meta.row_group(g)
        for c in range(group.num_columns):
            chunk = group.column(c)
            stats = chunk.statistics
            name = chunk.path_in_schema
            check(stats is not None and stats.has_null_count, path, name, "no null count")
            check(chunk.has_offset_index, path, name, "no offset index")
            if "." in name:
                continue
            part = values[name][first : first + group.num_rows]
            check(stats.null_count == sum(v is None for v in part), path, name, "null count", stats.null_count)
            have = [v for v in part if v is not None]
            nan = any(isinstance(v, float) and math.isnan(v) for v in have)
            check(stats.has_min_max == (bool(have) and not nan), path, name, "min/max", stats.has_min_max)
            check(nan or chunk.has_column_index, path, name, "no column index")
            if stats.has_min_max:
                check(stats.min <= min(have) and stats.max >= max(have), path, name, stats.min, stats.max)
                exact = all(not isinstance(v, str) or len(v.encode()) <= 64 for v in (min(have), max(have)))
                check(not exact or (stats.min, stats.max) == (min(have), max(have)), path, name, "inexact", stats)
        first += group.num_rows


def check_filters(path, truth, values):
    rng = random.Random(1)
    lazy = pl.scan_parquet(path)
    for name, kind in truth["Types"].items():
        column = values[name]
        have = [v for v in column if v is not None]
        count, nulls = duckdb.sql(f"SELECT count({name}), count(*) FILTER ({name} IS NULL) FROM '{path}'").fetchall()[0]
        check((count, nulls) == (len(have), len(column) - len(have)), path, name, "duckdb count", count, nulls)
        nulls = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {name} IS NULL").fetchall()[0][0]
        check(nulls == len(column) - len(have), path, name, "duckdb IS NULL", nulls)
        if kind.startswith("list") or not have:
            continue
        keys = [order(v) for v in have]
        nan = any(k == (1, 0.0) for k in keys)
        edges = [min(have, key=order), max(have, key=order)] + rng.sample(have, min(2, len(have)))
        for edge in edges:
            if isinstance(edge, str) and "\0" in edge:
                continue  # not in an SQL literal
            k = order(edge)
            wants = {
                "=": sum(x == k for x in keys),
                "<=": sum(x <= k for x in keys),
                ">=": sum(x >= k for x in keys),
                "<": sum(x < k for x in keys),
                ">": sum(x > k for x in keys),
            }
            for op, want in wants.items():
                got = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {name} {op} {literal(kind, edge)}").fetchall()[0][0]
                check(got == want, path, name, op, repr(edge), "duckdb", got, "want", want)
            if nan:
                continue
            got = pq.read_table(path, columns=[name], filters=[(name, "==", edge)]).num_rows
            check(got == wants["="], path, name, "=", repr(edge), "pyarrow", got)
            got = lazy.filter(pl.col(name) >= edge).select(pl.len()).collect().item()
            check(got == wants[">="], path, name, ">=", repr(edge), "polars", got)


def main(folder):
    with open(os.path.join(folder, "truth.json")) as f:
        truths = json.load(f)
    for truth in truths:
        path = os.path.join(folder, truth["File"])
        parquet = path.endswith(".parquet")
        values = {n: truth_values(k, truth["Columns"][n]) for n, k in truth["Types"].items()}
        for reader, columns in read_all(path, parquet, truth["Types"]):
            for name, kind in truth["Types"].items():
                wrong = same(kind, columns[name], values[name])
                check(wrong is None, truth["File"], reader, name, wrong)
        schema = pq.read_schema(path) if parquet else pa.ipc.open_file(path).schema
        check_types(truth["File"], truth, schema)
        check((schema.metadata or {}).get(b"tracelake.table") == b"every_type", path, schema.metadata)
        if parquet:
            check_statistics(path, truth, values)
            check_filters(path, truth, values)
        else:
            check(ds.dataset(path, format="ipc").count_rows() == truth["Rows"], path, "dataset rows")
        print(truth["File"], truth["Rows"], "rows")
    for f in failures[:40]:
        print("FAIL", f)
    sys.exit(bool(failures))


main(sys.argv[1])
