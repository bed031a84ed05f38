"""Conversions on a real Spark cluster: a master and two workers."""

import json

from lakes import ROOT, catalog, commits, content, leftovers, unlike


def test_real_traces(spark_cluster, tracelake, binary, shared, tmp_path):
    """What a cluster converts is what one process converts, and a second job does nothing."""
    bad = tmp_path / "bad.json"
    bad.write_text("<html></html>")
    inputs = [*unlike(shared / "traces" / "own", ROOT / "testdata" / "demo"), bad]
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    tracelake("convert", "-q", *inputs, "-o", alone, "--run", "all", ok=(0, 3))
    words = ["--program", binary, "--task-bytes", 1 << 19, *inputs, "-o", spread, "--", "--run", "all"]
    done = spark_cluster.run(*words, ok=(3,))
    told = json.loads(done.stdout)
    assert content(spread) == content(alone)
    assert leftovers(spread) == []
    rows = catalog(spread)
    assert len(rows) == told["inputs"] == len(commits(alone)) > 15
    assert {r["trace_id"] + ".json" for r in rows} == set(commits(alone)), "a row for each commit"
    rejected = {r["path"] for r in rows if r["status"] == "rejected"}
    assert rejected == {c["source"]["path"] for c in commits(alone).values() if c["outcome"] == "rejected"}
    assert len(rejected) == told["rejected"] > 3 and "failed" not in told
    assert (spread / "_tracelake" / "views.sql").read_text() == (alone / "_tracelake" / "views.sql").read_text().replace(
        str(alone), str(spread)
    )
    again = json.loads(spark_cluster.run(*words).stdout)
    assert again == {"inputs": told["inputs"], "held": told["inputs"], "catalog": None}
    assert content(spread) == content(alone)


def test_fails_every_time(spark_cluster, tracelake, binary, tmp_path):
    """An input that fails on every machine becomes a row; the rest goes on, and the next job tries it again."""
    program, lake = tmp_path / "tracelake", tmp_path / "lake"
    inputs = unlike(ROOT / "testdata" / "demo")
    words = ["--task-bytes", 1, *inputs, "-o", lake, "--", "--run", "all"]
    refusal = f'case "$*" in *--member*{inputs[0].name}) echo no room >&2; exit 1; esac'
    program.write_text(f'#!/bin/sh\n{refusal}\nexec {binary.resolve()} "$@"\n')
    program.chmod(0o755)
    told = json.loads(spark_cluster.run("--program", program, *words, ok=(3,)).stdout)
    assert (told["ok"], told["failed"]) == (len(inputs) - 1, 1)
    (row,) = [r for r in catalog(lake) if r["status"] == "failed"]
    assert row["path"] == str(inputs[0]) and row["attempt"] == 3 and row["reason"].endswith("exit code 1: no room")
    told = json.loads(spark_cluster.run("--program", binary, *words, master="local[1]").stdout)
    assert (told["held"], told["ok"]) == (len(inputs) - 1, 1)
    tracelake("convert", "-q", *inputs, "-o", tmp_path / "alone", "--run", "all")
    assert content(lake) == content(tmp_path / "alone")
