"""kill -9 in the middle of a distributed conversion, and the same command again."""

import random
import subprocess
import time

import psutil
import pytest
from lakes import ROOT, catalog, commits, content, unlike
from spark_cluster import HOSTS, environment, tree


def executors(cluster):
    return [p for w in cluster.workers for p in tree(w) if "CoarseGrainedExecutorBackend" in " ".join(words_of(p))]


def children(cluster):
    return [p for w in cluster.workers for p in tree(w) if "--die-with" in words_of(p)]


def words_of(p):
    try:
        return p.cmdline()
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def alone(tracelake, shared, tmp_path_factory):
    inputs = unlike(ROOT / "testdata" / "demo", shared / "traces" / "own")
    lake = tmp_path_factory.mktemp("alone") / "lake"
    tracelake("convert", "-q", *inputs, "-o", lake, "--run", "all", ok=(0, 3))
    return inputs, content(lake), set(commits(lake))


@pytest.mark.parametrize("victim", ["driver", "executor", "child"])
def test_kill(spark_cluster, binary, alone, tmp_path, victim):
    inputs, want, traces = alone
    lake = tmp_path / "lake"
    words = ["--program", binary, "--task-bytes", 1 << 18, *inputs, "-o", lake, "--", "--run", "all"]
    seed = random.randrange(1 << 30)
    after = random.Random(seed).randint(1, len(traces) // 2)
    driver = subprocess.Popen(
        spark_cluster.command(*words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(HOSTS[0]),
        start_new_session=True,
    )
    try:
        killed = kill_one(spark_cluster, driver, victim, lake, after)
        assert killed, f"seed {seed}: no {victim} to kill"
        if victim == "driver":
            driver.wait(timeout=60)
            end(driver)  # and its JVM
            gone = time.monotonic() + 60
            while children(spark_cluster) and time.monotonic() < gone:
                time.sleep(0.2)
            assert children(spark_cluster) == [], "a child outlived its parent"
            assert len(commits(lake)) < len(traces), f"seed {seed}: nothing was left to do"
        else:
            assert driver.wait(timeout=300) in (0, 3), f"seed {seed}: the job did not survive"
    finally:
        end(driver)
    spark_cluster.run(*words, ok=(0, 3))
    assert content(lake) == want, f"seed {seed}"
    assert set(commits(lake)) == traces
    rows = catalog(lake)
    assert sorted(r["trace_id"] + ".json" for r in rows) == sorted(traces), "a row for each input, and one only"


def kill_one(cluster, driver, victim, lake, after):
    """Kills a process once so many traces are in the dataset."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and driver.poll() is None:
        if (lake / "_tracelake" / "commits").is_dir() and len(list((lake / "_tracelake" / "commits").glob("*.json"))) >= after:
            if victim == "driver":
                end(driver)
                return True
            for p in {"executor": executors, "child": children}[victim](cluster):
                try:
                    p.kill()
                    return True
                except psutil.NoSuchProcess:
                    pass
        time.sleep(0.005)
    return False


def end(driver):
    for p in [*tree(psutil.Process(driver.pid)), driver] if driver.poll() is None else []:
        try:
            p.kill()
        except psutil.NoSuchProcess:
            pass
