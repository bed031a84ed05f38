"""Converts traces on Ray, and runs collect with a GPU for each job.

    python -m tracelake_ray INPUT... -o LAKE [-- FLAGS OF convert]

Ray schedules and repeats what failed. It starts no copies of slow tasks: give a
time limit.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import typing

import ray
import tracelake_task as task

TRIES = 4


def convert(
    inputs: typing.Iterable[str],
    lake: str,
    flags: typing.Sequence[str] = (),
    program: str = "",
    task_bytes: int = 64 << 20,
    timeout: float | None = None,
    cpus: int = 1,
) -> list[task.Row]:
    """Converts what the dataset does not hold yet and returns the rows of its inputs.

    The program, the inputs and the dataset have the same path on every machine.
    """
    here = task.find_program(program)
    lake = task.absolute(lake)
    listing = task.list_inputs(here, inputs, lake, flags)
    words = ("-j", str(cpus), *flags)
    # The library goes along, as nothing but Ray need be installed on the others.
    code = ray.put(open(task.__file__).read())

    def run(group: list[str], source: str) -> tuple[list[task.Row], list[tuple[str, str]]]:
        module = type(sys)("tracelake_task")
        exec(compile(source, "tracelake_task.py", "exec"), module.__dict__)
        rows, bad = [], []
        for unit in group:
            try:
                rows += module.convert(here, unit, lake, words, timeout)
            except module.Failed as e:
                bad.append((unit, str(e)))
        return rows, bad

    # What failed comes back and is tried again; a lost worker is Ray's to replace.
    remote = ray.remote(num_cpus=cpus, max_retries=TRIES - 1)(run)
    todo = task.groups(listing.units, task_bytes)
    rows = listing.done
    for attempt in range(TRIES):
        pending, failed = [remote.remote(group, code) for group in todo], []
        while pending:
            ready, pending = ray.wait(pending)
            done, bad = ray.get(ready[0])
            rows += done
            failed += bad
        todo = [[unit] for unit, _ in failed]
        if attempt == TRIES - 1:
            rows += [task.failed(unit, task.Failed(why), attempt) for unit, why in failed]
    task.list_inputs(here, inputs, lake, flags)
    return rows


def collect(jobs: typing.Iterable[typing.Sequence[str]], program: str = "", gpus: float = 1, cpus: int = 1) -> list[tuple[int, str]]:
    """Runs tracelake collect once for each list of arguments, on GPUs of its own, and returns exit codes and last words.

    Ray sets CUDA_VISIBLE_DEVICES; collect resumes, so that a repeated job does what is left.
    """
    here = task.find_program(program)

    def run(words: list[str]) -> tuple[int, str]:
        done = subprocess.run([here, "collect", *words], capture_output=True, check=False)
        return done.returncode, done.stderr[-2000:].decode(errors="replace")

    remote = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=TRIES - 1)(run)
    return ray.get([remote.remote(list(map(os.fspath, words))) for words in jobs])


def main(argv: list[str] | None = None) -> int:
    words, flags = task.split_words(sys.argv[1:] if argv is None else argv)
    p = argparse.ArgumentParser(prog="tracelake_ray", description="Converts traces on Ray. What follows -- are flags of tracelake convert.")
    p.add_argument("inputs", nargs="+", metavar="INPUT", help="files, directories, globs or URLs, the same on every machine")
    p.add_argument("-o", "--output", required=True, metavar="LAKE", help="the dataset, the same on every machine")
    p.add_argument("--address", help="of a running Ray (default: start one on this machine)")
    p.add_argument("--program", default="", metavar="FILE", help="tracelake program, at the same path on every machine")
    p.add_argument("--cpus", type=int, default=1, metavar="N", help="processors for each task")
    p.add_argument("--task-bytes", type=int, default=64 << 20, metavar="N", help="small inputs share a task up to this size")
    p.add_argument("--timeout", type=float, metavar="S", help="end an attempt at an input after S seconds; it is tried again")
    a = p.parse_args(words)
    ray.init(address=a.address, include_dashboard=False, log_to_driver=False)
    try:
        rows = convert(a.inputs, a.output, flags, a.program, a.task_bytes, a.timeout, a.cpus)
    except (task.Unusable, FileNotFoundError) as e:
        print(f"tracelake_ray: {e}", file=sys.stderr)
        return getattr(e, "code", 1)
    finally:
        ray.shutdown()
    counts = collections.Counter(r["status"] for r in rows)
    for r in rows:
        if r["status"] != "ok":
            print(f"{r['status']:9} {r['path']}: {r['reason']}", file=sys.stderr)
    print(json.dumps(dict(counts)))
    return 3 if counts["rejected"] or counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
