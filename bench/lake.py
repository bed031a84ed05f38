"""How long every analysis takes over a dataset of many traces.

    bench/lake.py [--traces 200] [--mb 82] [--limit 10] [--max-memory 2GiB]

Makes the traces with bench/gen, eight ranks to a run, and converts one after
the other (82 MB are about 250 thousand events); a dataset that is there already
is used as it is. Then runs every analysis, prints a table and exits with 1
where one fails, takes longer than the limit (critical-path may), or more memory.
"""

import argparse
import pathlib
import re
import subprocess
import sys

from measure import measure

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINARY = ROOT / "bin" / "tracelake"
RANKS = 8
# How far the peak may lie above the limit.
OVERHEAD_MIB = 64


def make(lake: pathlib.Path, traces: int, mb: float):
    lake.parent.mkdir(parents=True, exist_ok=True)
    generator = lake.parent / "gen"
    subprocess.run(["go", "build", "-o", generator, "./bench/gen"], cwd=ROOT, check=True)
    partial = lake.with_name(lake.name + ".partial")
    for i in range(traces):
        run, rank = divmod(i, RANKS)
        trace = lake.parent / f"rank{rank}.json"
        mix = ("serving", "training", "decode")[run % 3]
        words = [generator, "-mb", mb, "-seed", i + 1, "-rank", rank, "-world", RANKS, "-mix", mix, "-o", trace]
        subprocess.run([str(w) for w in words], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([BINARY, "convert", trace, "-o", partial, "--run", f"run{run:03}", "-q"], check=True)
        trace.unlink()
        print(f"\r{i + 1} of {traces} traces", end="", file=sys.stderr)
    partial.rename(lake)


def analyses():
    out = subprocess.run([BINARY, "analyze", "--list"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (\S+)", out, re.M)


def main():
    parser = argparse.ArgumentParser(description="Time of every analysis over a large dataset.")
    parser.add_argument("--traces", type=int, default=200)
    parser.add_argument("--mb", type=float, default=82, help="size of one trace in MB")
    parser.add_argument("--limit", type=float, default=10, help="seconds that an analysis may take")
    parser.add_argument("--max-memory", default="2GiB")
    parser.add_argument("--only", default="", help="names of the analyses to run")
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / ".bench")
    arguments = parser.parse_args()
    lake = arguments.cache / f"lake-{arguments.traces}-{arguments.mb:g}mb"
    if not lake.exists():
        make(lake, arguments.traces, arguments.mb)
    count = "SELECT count(*), sum(events)::BIGINT, sum(gpu_events)::BIGINT FROM traces"
    print(subprocess.run([BINARY, "sql", lake, count, "--format", "csv"], capture_output=True, text=True, check=True).stdout)
    match = re.fullmatch(r"([\d.]+)([GM])iB", arguments.max_memory)
    bound = float(match[1]) * (1024 if match[2] == "G" else 1) + OVERHEAD_MIB
    slow = []
    print("| analysis | wall s | CPU s | peak RSS MiB |\n|---|---|---|---|")
    for name in arguments.only.split(",") if arguments.only else analyses():
        r = measure([BINARY, "analyze", name, lake, "--max-memory", arguments.max_memory, "--format", "csv"], arguments.cache / "answer")
        print(f"| {name} | {r.wall_s:.1f} | {r.cpu_s:.1f} | {r.rss_mib:.0f} |" + (" FAILED: " + r.output if r.status else ""), flush=True)
        if r.status or r.rss_mib > bound or r.wall_s > arguments.limit and name != "critical-path":
            slow.append(name)
    if slow:
        print("too slow, too large or failed:", ", ".join(slow))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
