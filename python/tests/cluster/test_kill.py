"""kill -9 in the middle of a conversion on Spark: the dataset is that of an undisturbed one."""

import random
import subprocess

import psutil
import pytest
from lakes import catalog, commits
from spark_cluster import HOSTS, environment, tree, wait_for

# A program that runs tracelake and has a process killed while it does, once. A
# conversion that ends before its moment comes halves the time of the next one.
# exec keeps the process: it is the child of the task that Spark started.
KILLER = """#!/bin/sh
case "$*" in *--member*)
  if [ ! -d {done} ]; then (
    p=$$
    until tr '\\0' ' ' </proc/$p/cmdline | grep -q -e '{victim}'; do
      p=$(awk '/^PPid/ {{ print $2 }}' /proc/$p/status) || exit
    done
    sleep $(ls -d {done}.late.* | awk 'BEGIN {{ s = {after} }} {{ s /= 2 }} END {{ print s }}')
    kill -0 $$ || exec mkdir {done}.late.$$
    mkdir {done} && kill -9 $p
  ) >/dev/null 2>&1 </dev/null & fi
esac
exec {program} "$@"
"""
VICTIMS = {"child": "--member", "executor": "CoarseGrainedExecutorBackend"}


@pytest.mark.parametrize("victim", VICTIMS)
def test_kill_of_a_task(spark_cluster, binary, alone, tmp_path, victim):
    """Spark repeats the task of a killed child or executor within the same job."""
    done, program = tmp_path / "done", tmp_path / "tracelake"
    after = random.uniform(0, 0.1)
    program.write_text(KILLER.format(done=done, after=f"{after:.3f}", victim=VICTIMS[victim], program=binary.resolve()))
    program.chmod(0o755)
    spark_cluster.run(*alone.words(program, tmp_path / "lake"), ok=(3,))
    assert done.is_dir(), f"no {victim} was killed {after:.3f} s after its start"
    alone.same(tmp_path / "lake")


def test_kill_of_the_driver(spark_cluster, binary, alone, tmp_path):
    """The same command again does what is left."""
    lake, traces = tmp_path / "lake", alone.traces
    after = random.randint(1, len(traces) // 2)
    driver = subprocess.Popen(
        spark_cluster.command(*alone.words(binary, lake)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(HOSTS[0]),
        start_new_session=True,
    )
    try:
        wait_for(lambda: driver.poll() is not None or len(commits(lake)) >= after, "commits", 200)
        assert driver.poll() is None, "the driver ended by itself"
    finally:
        end(driver)
    wait_for(lambda: not spark_cluster.conversions(), "the end of all conversions", 60)
    assert len(commits(lake)) < len(traces), f"killed after {after} commits, nothing was left to do"
    assert catalog(lake) == []
    spark_cluster.run(*alone.words(binary, lake), ok=(3,))
    alone.same(lake)


def end(driver):
    """Kills the driver and its JVM."""
    for p in [*tree(psutil.Process(driver.pid)), driver]:
        try:
            p.kill()
        except psutil.NoSuchProcess:
            pass
    driver.wait(timeout=60)
