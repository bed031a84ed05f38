"""Converts traces on Ray, and runs collect with a GPU for each model.

    python -m tracelake_ray INPUT... -o LAKE [-- FLAGS OF convert]
    python -m tracelake_ray collect MODEL... -- FLAGS OF collect

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
import time
import typing

import ray
import tracelake_task as task

TRIES = 4


def convert(
    inputs: typing.Iterable[str],
    lake: str,
    flags: typing.Sequence[str] = (),
    program: str = "",
    task_bytes: int = task.TASK_BYTES,
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
        if attempt and todo:
            time.sleep(2 ** (attempt - 1))  # a store or a disk may be away for a moment
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


def collect(
    jobs: typing.Iterable[typing.Sequence[str]], program: str = "", gpus: float = 1, cpus: int = 1
) -> list[tuple[int, str]]:
    """Runs tracelake collect once for each list of arguments, on GPUs of its own, and returns exit codes and last words.

    Ray sets CUDA_VISIBLE_DEVICES; collect resumes, so that a repeated job does what is left.
    """
    here = task.find_program(program)

    def run(words: list[str]) -> tuple[int, str]:
        words = [here, "collect", "--die-with", str(os.getpid()), *words]
        done = subprocess.run(words, capture_output=True, check=False)
        return done.returncode, done.stderr[-2000:].decode(errors="replace")

    remote = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=TRIES - 1)(run)
    return ray.get([remote.remote(list(map(os.fspath, words))) for words in jobs])


def main(argv: list[str] | None = None) -> int:
    words, flags = task.split_words(sys.argv[1:] if argv is None else argv)
    collects = words[:1] == ["collect"]  # a directory of that name is ./collect
    if collects:
        p = argparse.ArgumentParser(
            prog="tracelake_ray collect", description="Runs tracelake collect on Ray. What follows -- are flags of tracelake collect."
        )
        p.add_argument("models", nargs="+", metavar="MODEL", help="as for collect --model; each is a task with GPUs of its own")
        p.add_argument("--gpus", type=float, default=1, metavar="N", help="GPUs for each task (default 1; 0: none)")
    else:
        p = task.parser("tracelake_ray", "Ray")
    p.add_argument("--address", help="of a running Ray (default: start one on this machine)")
    p.add_argument("--program", default="", metavar="FILE", help="tracelake program, at the same path on every machine")
    p.add_argument("--cpus", type=int, default=1, metavar="N", help="processors for each task")
    a = p.parse_args(words[1:] if collects else words)
    ray.init(address=a.address, include_dashboard=False, log_to_driver=False)
    try:
        counts = _collected(a, flags) if collects else _converted(a, flags)
    except (task.Unusable, FileNotFoundError) as e:
        print(f"tracelake_ray: {e}", file=sys.stderr)
        return getattr(e, "code", 1)
    finally:
        ray.shutdown()
    print(json.dumps(dict(counts)))
    return 3 if counts["rejected"] or counts["failed"] else 0


def _converted(a: argparse.Namespace, flags: list[str]) -> collections.Counter:
    rows = convert(a.inputs, a.output, flags, a.program, a.task_bytes, a.timeout, a.cpus)
    for r in rows:
        if r["status"] != "ok":
            print(f"{r['status']:9} {r['path']}: {r['reason']}", file=sys.stderr)
    return collections.Counter(r["status"] for r in rows)


def _collected(a: argparse.Namespace, flags: list[str]) -> collections.Counter:
    counts: collections.Counter = collections.Counter()
    done = collect([["--model", m, *flags] for m in a.models], a.program, a.gpus, a.cpus)
    for model, (code, said) in zip(a.models, done, strict=True):
        counts["failed" if code else "ok"] += 1
        if code:
            print(f"failed    {model}: exit code {code}: {said}", file=sys.stderr)
    return counts


if __name__ == "__main__":
    sys.exit(main())
