"""Datasets compared by content."""

import json
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "python" / "package" / "src"


def tables(lake):
    return sorted(p.name for p in lake.iterdir() if p.is_dir() and not p.name.startswith("_"))


def content(lake):
    """Rows and a hash of all rows of each table, whatever their order and files."""
    con = duckdb.connect()
    out = {}
    for table in tables(lake):
        hive = "false" if table == "traces" else "true"
        view = f"read_parquet('{lake}/{table}/**/*.parquet', hive_partitioning = {hive}, union_by_name = true)"
        out[table] = con.sql(f"SELECT count(*), sum(hash(t)::HUGEINT), count(DISTINCT trace_id) FROM {view} t").fetchall()[0]
    return out


def commits(lake):
    return {p.name: json.loads(p.read_text()) for p in (lake / "_tracelake" / "commits").glob("*.json")}


def catalog(lake):
    """The rows of all jobs that ended."""
    files = lake / "_tracelake" / "catalog" / "job=*" / "*.parquet"
    return (
        duckdb.connect().sql(f"SELECT * FROM read_parquet('{files}', hive_partitioning = true) ORDER BY job, path").df().to_dict("records")
    )


def leftovers(lake):
    """What unfinished or killed writers left."""
    named = {f["path"] for c in commits(lake).values() for f in c["files"]}
    parts = {str(p.relative_to(lake)) for t in tables(lake) for p in (lake / t).rglob("*") if p.is_file()}
    return sorted(parts - named) + sorted(str(p) for p in (lake / "_tracelake").rglob(".tmp-*"))
