"""Inputs and datasets in an object store, through the engines, and a store that goes away."""

import json
import subprocess
import sys
import threading
import time

import pytest
from gateway import BUCKET, SECRET
from lakes import ROOT, commits, content, leftovers
from spark_cluster import environment, wait_for

AWAY = 2  # seconds


@pytest.fixture
def bucket(gateway, tracelake, monkeypatch):
    """A bucket with traces and with the dataset that nothing disturbed."""
    for name, value in environment("127.0.0.1").items():
        monkeypatch.setenv(name, value)
    (gateway.folder / "in").mkdir()
    for path in sorted((ROOT / "testdata" / "demo").rglob("*.json*")):
        (gateway.folder / "in" / f"{path.parent.name}-{path.name}").write_bytes(path.read_bytes())
    (gateway.folder / "in" / "bad.json").write_text("<html></html>")
    tracelake("convert", "-q", gateway.url("in/"), "-o", gateway.url("alone"), "--run", "all", ok=(3,))
    return gateway


def same(bucket, lake):
    alone = bucket.folder / "alone"
    assert content(bucket.folder / lake) == content(alone)
    assert set(commits(bucket.folder / lake)) == set(commits(alone)) and len(commits(alone)) > 5
    assert leftovers(bucket.folder / lake) == []


def on_ray(bucket, lake, binary):
    words = ["--program", binary, "--task-bytes", 1, bucket.url("in/"), "-o", bucket.url(lake), "--", "--run", "all"]
    return subprocess.run([sys.executable, "-m", "tracelake_ray", *map(str, words)], capture_output=True, text=True, timeout=300)


def on_spark(bucket, lake, binary, cluster, catalog, ok=(3,)):
    """Spark's own writer knows s3a with a library that PySpark lacks: the catalog is elsewhere."""
    words = ["--program", binary, "--task-bytes", 1, "--catalog", f"file://{catalog}", bucket.url("in/"), "-o", bucket.url(lake)]
    return cluster.run(*words, "--", "--run", "all", ok=ok)


class Outage(threading.Thread):
    """Kills the store once the dataset has a commit, and starts it again."""

    def __init__(self, bucket, lake):
        super().__init__(daemon=True)
        self.bucket, self.lake, self.left = bucket, lake, None

    def run(self):
        folder = self.bucket.folder / self.lake
        wait_for(lambda: commits(folder), "commit", 200)
        self.bucket.kill()
        self.left = len(commits(self.bucket.folder / "alone")) - len(commits(folder))
        time.sleep(AWAY)
        self.bucket.start()


def test_spark(spark_cluster, bucket, binary, tmp_path):
    """From a bucket into a bucket, and no secret in what is left behind."""
    done = on_spark(bucket, "spread", binary, spark_cluster, tmp_path / "catalog")
    told = json.loads(done.stdout)
    assert (told["ok"], told["rejected"]) == (len(commits(bucket.folder / "alone")) - 1, 1)
    same(bucket, "spread")
    again = json.loads(on_spark(bucket, "spread", binary, spark_cluster, tmp_path / "catalog", ok=(0,)).stdout)
    assert again["held"] == again["inputs"] and again["catalog"] is None
    logs = [p for p in spark_cluster.folder.rglob("*") if p.is_file() and p.suffix not in (".py", ".zip") and p.stat().st_size < 1 << 22]
    assert len(logs) > 4
    for p in [*logs, *(tmp_path / "catalog").rglob("*.parquet")]:
        assert SECRET.encode() not in p.read_bytes(), p
    assert SECRET not in done.stderr + done.stdout


def test_ray(bucket, binary):
    done = on_ray(bucket, "spread", binary)
    assert done.returncode == 3, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"ok": len(commits(bucket.folder / "alone")) - 1, "rejected": 1}
    assert f"s3://{BUCKET}/in/bad.json:" in done.stderr and SECRET not in done.stderr
    same(bucket, "spread")


@pytest.mark.parametrize("engine", ["spark", "ray"])
def test_store_killed(request, bucket, binary, tmp_path, engine):
    """kill -9 of the store in the middle: the dataset is that of an undisturbed conversion."""
    outage = Outage(bucket, "hit")
    if engine == "spark":
        cluster = request.getfixturevalue("spark_cluster")
        outage.start()
        told = json.loads(on_spark(bucket, "hit", binary, cluster, tmp_path / "catalog").stdout)
    else:
        outage.start()
        told = json.loads(on_ray(bucket, "hit", binary).stdout.splitlines()[-1])
    outage.join(timeout=60)
    assert outage.left, "the store was killed when all was done"
    assert "failed" not in told and told["rejected"] == 1, told
    same(bucket, "hit")
