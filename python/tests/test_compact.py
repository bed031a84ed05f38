"""Merged files hold the same rows for every reader; shares make a whole."""

import json
import shutil

import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest
from conftest import ROOT
from lakes import content

INPUTS = [ROOT / "testdata" / "demo", ROOT / "testdata" / "own", ROOT / "testdata" / "visible"]


def files(lake):
    return list(lake.rglob("*.parquet"))


@pytest.fixture(scope="module")
def lake(tracelake, tmp_path_factory):
    path = tmp_path_factory.mktemp("compact") / "lake"
    tracelake("convert", "-q", *INPUTS, "-o", path, "--run", "all", ok=(0, 3))
    return path


def test_compact(tracelake, lake, tmp_path):
    merged = tmp_path / "lake"
    shutil.copytree(lake, merged)
    before, many = content(merged), len(files(merged))
    done = json.loads(tracelake("compact", "--json", merged).stdout)
    assert done["merged_files"] > 100 and done["busy_dirs"] == done["left_files"] == 0
    assert len(files(merged)) == many - done["merged_files"] + done["new_files"] < many / 3
    assert content(merged) == before
    for table in ("gpu_events", "cpu_events", "activities"):
        rows = before[table][0]
        assert len(pd.read_parquet(merged / table)) == rows
        assert pl.scan_parquet(merged / table, hive_partitioning=True).select(pl.len()).collect().item() == rows
        assert ds.dataset(merged / table, partitioning="hive").count_rows() == rows
    # The program itself reads them, knows that all is done, and finds nothing more to merge.
    for name in ("kernels", "devices", "trust"):
        p = [tracelake("analyze", name, x, "--format", "json").stdout for x in (lake, merged)]
        assert p[0] == p[1], name
    again = tracelake("convert", "--json", *INPUTS, "-o", merged, "--run", "all", ok=(0, 3))
    summary = json.loads(again.stdout.splitlines()[-1])["summary"]
    assert summary["done"] == 0 and summary["skipped"] > 20
    assert json.loads(tracelake("compact", "--json", merged).stdout)["merged_files"] == 0
    # One trace of a merged file is imported again; the others stay.
    tracelake("convert", "-q", "--force", INPUTS[0] / "serving", "-o", merged, "--run", "all")
    assert content(merged) == before


def test_target_file_size(tracelake, lake, tmp_path):
    """convert can leave merged files behind."""
    out = tmp_path / "lake"
    args = ["convert", *INPUTS, "-o", out, "--run", "all", "--target-file-size", "64MiB"]
    p = tracelake(*args, ok=(0, 3))
    assert "merged into" in p.stderr
    assert content(out).keys() == content(lake).keys()
    for table, (rows, _, traces) in content(lake).items():
        assert content(out)[table][0::2] == (rows, traces), table
    assert len(files(out)) < len(files(lake)) / 3


def test_shards(tracelake, lake, tmp_path):
    """Three shares, converted one by one, are the whole."""
    out = tmp_path / "lake"
    done = []
    for i in range(3):
        p = tracelake("convert", "--json", *INPUTS, "-o", out, "--run", "all", "--shard", f"{i}/3", ok=(0, 3))
        done.append(json.loads(p.stdout.splitlines()[-1])["summary"]["inputs"])
    assert all(n > 5 for n in done)
    assert {k: v[0] for k, v in content(out).items()} == {k: v[0] for k, v in content(lake).items()}
    for bad in ("3/3", "1", "-1/2", "a/b", "0/0"):
        assert "--shard" in tracelake("convert", *INPUTS, "-o", out, "--shard", bad, ok=(2,)).stderr


def test_vacuum(tracelake, lake, tmp_path):
    out = tmp_path / "lake"
    shutil.copytree(lake, out)
    before = content(out)
    orphan = next((out / "gpu_events").rglob("*.parquet"))
    shutil.copy(orphan, orphan.with_name("part-000000000000.parquet"))
    assert content(out) != before
    assert json.loads(tracelake("vacuum", "--json", out).stdout)["parts"] == 0  # it is not old enough
    assert json.loads(tracelake("vacuum", "--json", out, "--older-than", "0s").stdout)["parts"] == 1
    assert content(out) == before
    assert "not a tracelake dataset" in tracelake("vacuum", tmp_path, ok=(5,)).stderr
    assert "not a tracelake dataset" in tracelake("compact", ROOT / "docs", ok=(5,)).stderr
