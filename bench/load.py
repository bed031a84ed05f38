"""Memory and descriptors of one import of many traces.

    bench/load.py [--traces 10000] [--program bin/tracelake] [--cache DIR]

Writes copies of a real trace that differ in one name, imports their directory
in one run, and prints what the process held while it went on: a line for each
tenth of the time. What it held in the last tenth may be at most a quarter more
than in the third, apart from what a dataset of that size needs to be known.
"""

import argparse
import gzip
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "testdata" / "demo" / "cpu" / "hf_inductor_compiled_shapes.json.gz"


def write(directory: pathlib.Path, traces: int):
    text = gzip.decompress(SAMPLE.read_bytes())
    end = text.rindex(b"}")
    for i in range(traces):
        run = directory / f"run{i // 1000:03}"
        run.mkdir(parents=True, exist_ok=True)
        packed = gzip.compress(text[:end] + b', "copy": %d}' % i, 1)
        (run / f"rank{i % 1000}.pt.trace.json.gz").write_bytes(packed)


def held(pid: int):
    """Resident memory in MiB and open descriptors of a process."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024, len(os.listdir(f"/proc/{pid}/fd"))
    raise ProcessLookupError


def watch(command, log):
    samples = []
    with open(log, "w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        while process.poll() is None:
            try:
                samples.append(held(process.pid))
            except OSError:
                pass
            time.sleep(0.1)
    return process.returncode, samples


def main():
    parser = argparse.ArgumentParser(description="Memory and descriptors of one import of many traces.")
    parser.add_argument("--traces", type=int, default=10000, help="how many traces")
    parser.add_argument("--program", default=ROOT / "bin" / "tracelake")
    parser.add_argument("--cache", default=ROOT / ".bench", help="where traces and dataset go, and are removed again")
    arguments = parser.parse_args()
    work = pathlib.Path(arguments.cache) / "load"
    shutil.rmtree(work, ignore_errors=True)
    write(work / "traces", arguments.traces)
    began = time.monotonic()
    log = pathlib.Path(arguments.cache) / "load.log"
    code, samples = watch([arguments.program, "convert", "-q", work / "traces", "-o", work / "lake"], log)
    print(f"{arguments.traces} traces, {time.monotonic() - began:.0f} s, exit code {code}")
    print("tenth  RSS MiB  descriptors, at most")
    tenth = max(1, len(samples) // 10)
    medians = []
    for i in range(10):
        part = samples[i * tenth : (i + 1) * tenth]
        if part:
            medians.append(statistics.median(memory for memory, _ in part))
            print(f"{i + 1:5}  {medians[-1]:7.0f}  {max(fds for _, fds in part):3}")
    print(f"peak {max(memory for memory, _ in samples):.0f} MiB, {max(fds for _, fds in samples)} descriptors")
    shutil.rmtree(work, ignore_errors=True)
    flat = len(medians) < 10 or medians[9] < 1.25 * medians[2]
    return 0 if code == 0 and flat else 1


if __name__ == "__main__":
    sys.exit(main())
