"""Slow tasks on Spark: a copy runs on the other host, and what both commit is there once."""

import time

import pytest

# A program that is slow the first time it converts one of the inputs. When its
# task is gone it ends, as the program itself does: Spark kills the task alone, or
# hangs up on the task and all that it started when the job is over before that.
SLOW = """#!/bin/sh
case "$*" in *--member*{input})
  if mkdir {place}/first 2>/dev/null; then
    trap 'exec mkdir {place}/gone' HUP
    until {until}; do
      kill -0 $PPID 2>/dev/null || exec mkdir {place}/gone
      sleep 0.05
    done
  else
    mkdir {place}/copy
  fi
esac
exec {program} "$@"
"""
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
}


@pytest.mark.parametrize("until", ["false", "[ -d {place}/copy ]"], ids=["overtaken", "at once"])
def test_copy_of_a_slow_task(spark_cluster, tracelake, binary, alone, tmp_path, until):
    """The first attempt never ends, or commits at the same time as its copy."""
    program, lake = tmp_path / "tracelake", tmp_path / "lake"
    slow = alone.inputs[len(alone.inputs) // 2]
    program.write_text(SLOW.format(place=tmp_path, until=until.format(place=tmp_path), input=slow.name, program=binary.resolve()))
    program.chmod(0o755)
    spark_cluster.run(*alone.words(program, lake), conf=SPECULATION, ok=(3,))
    assert (tmp_path / "first").is_dir() and (tmp_path / "copy").is_dir(), "no copy was started"
    deadline = time.monotonic() + 60
    while spark_cluster.conversions() or until == "false" and not (tmp_path / "gone").is_dir():
        assert time.monotonic() < deadline, "the first attempt goes on after the job"
        time.sleep(0.05)
    # The next job begins with this, which sweeps what a killed one left.
    tracelake("convert", "--list", "--quiet", *alone.inputs, "-o", lake, "--run", "all")
    alone.same(lake)
