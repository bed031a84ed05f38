"""Datasets compared by content."""

import gzip
import hashlib
import json
import zlib
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[2]
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
    if not list(lake.glob("_tracelake/catalog/job=*/*.parquet")):
        return []
    return (
        duckdb.connect().sql(f"SELECT * FROM read_parquet('{files}', hive_partitioning = true) ORDER BY job, path").df().to_dict("records")
    )


def leftovers(lake):
    """What unfinished or killed writers left."""
    named = {f["path"] for c in commits(lake).values() for f in c["files"]}
    parts = {str(p.relative_to(lake)) for t in tables(lake) for p in (lake / t).rglob("*") if p.is_file()}
    return sorted(parts - named) + sorted(str(p) for p in (lake / "_tracelake").rglob(".tmp-*"))


def unlike(*folders):
    """The files of folders, one of each content: which of several holds the rows depends on who was first."""
    found = {}
    for path in sorted(p for f in folders for p in f.rglob("*") if p.is_file() and ".json" in p.name):
        data = path.read_bytes()
        try:
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        except (OSError, EOFError, zlib.error):
            pass  # damaged: told by the stored bytes
        found.setdefault(hashlib.sha256(data).digest(), path)
    return list(found.values())
