"""What a question costs, side by side with HolisticTraceAnalysis.

    bench/analyses.py [TRACE] [--mb 60] [--rounds 3] [--hta-rounds 1] [--only NAME,...]

Converts the trace (or one that bench/gen makes) once, then asks every question of both: tracelake reads the
Parquet files, HolisticTraceAnalysis the trace, each in a process of its own.
CPU is user and system time of the process; of several rounds the fastest
counts. "answer" is what HolisticTraceAnalysis spends once the trace is loaded.
Runs in the Python environment of `make bench`.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

from measure import measure

ROOT = pathlib.Path(__file__).resolve().parents[1]
QUESTIONS = ("devices", "idle", "kernels", "overlap", "launches", "queue")
BOUND = 20


def fastest(command, log, rounds):
    runs = [measure(command, log) for _ in range(rounds)]
    bad = [r for r in runs if r.status != 0]
    if bad:
        raise SystemExit(f"{' '.join(map(str, command))}: status {bad[0].status}: {bad[0].output}")
    return min(runs, key=lambda r: r.cpu_s)


def main():
    parser = argparse.ArgumentParser(description="What a question costs, side by side with HolisticTraceAnalysis.")
    parser.add_argument("trace", type=pathlib.Path, nargs="?")
    parser.add_argument("--mb", type=int, default=60, help="size of the generated trace in MB")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of tracelake")
    parser.add_argument("--hta-rounds", type=int, default=1, help="rounds of HolisticTraceAnalysis")
    parser.add_argument("--only", default="", help="questions to ask")
    arguments = parser.parse_args()
    binary = ROOT / "bin" / "tracelake"
    directory = pathlib.Path(tempfile.mkdtemp(prefix="tracelake-bench-"))
    log, lake = directory / "log", directory / "lake"
    try:
        if arguments.trace is None:
            arguments.trace = directory / "trace.json"
            words = ["go", "run", "./bench/gen", "-mb", str(arguments.mb), "-seed", "1", "-o", arguments.trace]
            subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        imported = fastest([binary, "convert", arguments.trace, "-o", lake, "--quiet"], log, 1)
        print(f"import, once: {imported.cpu_s:.2f} s CPU, {imported.rss_mib:.0f} MiB")
        print(f"{'question':10} {'tracelake s':>12} {'MiB':>6} {'HTA s':>8} {'MiB':>6} {'answer s':>9} {'ratio':>7} {'of answer':>10}")
        low = []
        for question in arguments.only.split(",") if arguments.only else QUESTIONS:
            ours = fastest([binary, "analyze", question, lake, "--format", "csv"], log, arguments.rounds)
            theirs = fastest(
                [sys.executable, ROOT / "bench" / "peers" / "hta_question.py", arguments.trace, question], log, arguments.hta_rounds
            )
            answer, ratio = float(theirs.output), theirs.cpu_s / ours.cpu_s
            print(
                f"{question:10} {ours.cpu_s:12.2f} {ours.rss_mib:6.0f} {theirs.cpu_s:8.2f} {theirs.rss_mib:6.0f}"
                f" {answer:9.2f} {ratio:7.1f} {answer / ours.cpu_s:10.2f}",
                flush=True,
            )
            if ratio < BOUND:
                low.append(question)
        print(f"at least {BOUND} times less CPU: {'all' if not low else 'all but ' + ', '.join(low)}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
