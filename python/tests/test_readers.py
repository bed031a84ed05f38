"""Every reader that people use sees the same rows, keys and types."""

import json
import pathlib

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ["gpu_events", "launches", "ranges", "cpu_events", "activities", "devices"]


@pytest.fixture(scope="module")
def demo_lake(tracelake, tmp_path_factory):
    """A dataset with every trace of testdata/demo: with and without a rank."""
    lake = tmp_path_factory.mktemp("demo") / "lake"
    tracelake("convert", ROOT / "testdata" / "demo", "-o", lake, "--quiet")
    return lake


def committed(lake: pathlib.Path, table: str) -> int:
    commits = (lake / "_tracelake" / "commits").glob("*.json")
    files = [f for c in commits for f in json.loads(c.read_text())["files"]]
    return sum(f["rows"] for f in files if f["table"] == table)


@pytest.mark.parametrize("table", TABLES)
def test_rows(demo_lake, table):
    directory = demo_lake / table
    want = committed(demo_lake, table)
    assert want > 0
    pattern = f"{directory}/**/*.parquet"
    counted = duckdb.execute("SELECT count(*) FROM read_parquet(?)", [pattern]).fetchall()
    assert counted == [(want,)]
    assert len(pd.read_parquet(directory, dtype_backend="pyarrow")) == want
    assert pl.read_parquet(directory).height == want
    assert ds.dataset(directory, partitioning="hive").count_rows() == want


def test_keys(demo_lake):
    """The rank is an integer for every reader, also where one is unknown."""
    directory = demo_lake / "cpu_events"
    want = {("cpu", -1), ("cpu", 0), ("serving", 0), ("serving", 1)}
    rows = duckdb.execute(
        "SELECT DISTINCT run, rank FROM read_parquet(?, hive_partitioning = true)",
        [f"{directory}/**/*.parquet"],
    ).fetchall()
    assert set(rows) == want
    frame = pd.read_parquet(directory, columns=["run", "rank"]).drop_duplicates()
    assert set(frame.itertuples(index=False, name=None)) == want
    assert set(pl.read_parquet(directory).select("run", "rank").unique().rows()) == want


def test_traces(demo_lake):
    """traces has run and rank as columns, and null for an unknown rank."""
    frame = pd.read_parquet(demo_lake / "traces", dtype_backend="pyarrow")
    assert len(frame) == 7
    assert set(frame["outcome"]) == {"ok"}
    assert frame["rank"].isna().sum() == 4


def test_times_agree(demo_lake):
    """Sums of nanoseconds are the same integers everywhere."""
    directory = demo_lake / "gpu_events"
    want = duckdb.execute(
        "SELECT sum(dur_ns)::BIGINT, min(start_ns) FROM read_parquet(?)",
        [f"{directory}/**/*.parquet"],
    ).fetchall()[0]
    frame = pd.read_parquet(directory, dtype_backend="pyarrow")
    assert (int(frame["dur_ns"].sum()), int(frame["start_ns"].min())) == want
    columns = pl.read_parquet(directory)
    assert (columns["dur_ns"].sum(), columns["start_ns"].min()) == want
