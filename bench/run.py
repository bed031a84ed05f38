"""Throughput of tracelake against other readers, in one run on one file.

    bench/run.py [--mb 300] [--rounds 3] [--peer-rounds 1] [--only NAME,...]

Makes a trace with bench/gen, then runs every reader in turn, round after round,
so that a busy moment of the machine does not hit one of them alone. CPU is user
and system time of the process; of several rounds the fastest counts. Prints a
table and the targets, and writes everything to bench/results/. Exits with 1
when a reader fails. Needs the standard library only; the peers run in the
Python environment of `make bench`.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

from measure import measure
from targets import check

ROOT = pathlib.Path(__file__).resolve().parents[1]


def prepare(cache: pathlib.Path, mb: int, seed: int):
    """Returns the plain and the compressed trace; makes them when missing."""
    generator = cache / "bin" / "gen"
    for name in ("gen", "sonicbench"):
        command = ["go", "build", "-o", cache / "bin" / name, f"./bench/{name}"]
        subprocess.run(command, cwd=ROOT, check=True)
    # Another generator makes another trace.
    digest = hashlib.sha256()
    for source in sorted((ROOT / "bench" / "gen").glob("*.go")):
        digest.update(source.read_bytes())
    plain = cache / f"trace-{mb}mb-{seed}-{digest.hexdigest()[:8]}.json"
    packed = plain.with_name(plain.name + ".gz")
    for path in (plain, packed):
        if not path.exists():
            print("writing", path, file=sys.stderr)
            partial = path.with_name("partial-" + path.name)
            words = [generator, "-mb", str(mb), "-seed", str(seed), "-o", partial]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            partial.rename(path)
    return plain, packed


def cases(cache: pathlib.Path, plain: pathlib.Path, packed: pathlib.Path):
    """The readers: name, command, environment, and whether it is a peer."""
    binary = ROOT / "bin" / "tracelake"
    convert = [binary, "convert", "--quiet", "-o", cache / "lake"]
    peers = ROOT / "bench" / "peers"
    for procs in ("1", "2"):
        for path, kind in ((plain, "json"), (packed, "gz")):
            yield f"tracelake {kind}, {procs} proc", [*convert, path], {"GOMAXPROCS": procs}, False
    yield "sonic structs", [cache / "bin" / "sonicbench", plain], {"GOMAXPROCS": "1"}, False
    for name, script, more in (
        ("json.load", "json_load.py", []),
        ("orjson", "orjson_loads.py", []),
        ("DuckDB read_json", "duckdb_json.py", [cache / "duckdb.parquet"]),
        ("HTA parse", "hta_parse.py", []),
        ("stormlog", "stormlog_capture.py", []),
    ):
        yield name, [sys.executable, peers / script, plain, *more], {}, True


def machine():
    model = platform.processor()
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return {"cpu": model, "cores": os.cpu_count(), "commit": commit.stdout.strip()}


def run(arguments):
    cache = pathlib.Path(arguments.cache)
    cache.mkdir(parents=True, exist_ok=True)
    plain, packed = prepare(cache, arguments.mb, arguments.seed)
    wanted = set(arguments.only.split(",")) if arguments.only else None
    results = {}
    for number in range(max(arguments.rounds, arguments.peer_rounds)):
        for name, command, env, peer in cases(cache, plain, packed):
            limit = arguments.peer_rounds if peer else arguments.rounds
            if number >= limit or wanted and name not in wanted:
                continue
            shutil.rmtree(cache / "lake", ignore_errors=True)
            result = measure(command, cache / "log", env)
            results.setdefault(name, []).append(result)
            line = f"{result.cpu_s:7.2f} s CPU {result.wall_s:7.2f} s {result.rss_mib:7.0f} MiB"
            print(f"{name:22} {line}  {result.output}", file=sys.stderr)
    shutil.rmtree(cache / "lake", ignore_errors=True)
    return plain.stat().st_size, results


def report(size, results):
    """Prints the table and returns the best run of every reader."""
    best = {}
    for name, runs in results.items():
        good = [r for r in runs if r.status == 0]
        if good:
            best[name] = min(good, key=lambda r: r.cpu_s)
    base = best.get("tracelake json, 1 proc")
    print(f"{'reader':22} {'MB/CPU-s':>9} {'CPU s':>8} {'wall s':>8} {'RSS MiB':>8} {'CPU ratio':>10}")
    for name, r in best.items():
        ratio = f"{r.cpu_s / base.cpu_s:10.2f}" if base else ""
        speed = size / 1e6 / r.cpu_s
        print(f"{name:22} {speed:9.1f} {r.cpu_s:8.2f} {r.wall_s:8.2f} {r.rss_mib:8.0f} {ratio}")
    failed = [name for name, runs in results.items() if any(r.status != 0 for r in runs)]
    for name in failed:
        print(f"{name}: FAILED: {[r.output for r in results[name] if r.status != 0][0]}")
    return best, failed


def main():
    parser = argparse.ArgumentParser(description="Throughput of tracelake against other readers.")
    parser.add_argument("--mb", type=int, default=300, help="size of the trace in MB")
    parser.add_argument("--seed", type=int, default=1, help="seed of the trace")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the Go programs")
    parser.add_argument("--peer-rounds", type=int, default=1, help="rounds of the other readers")
    parser.add_argument("--only", default="", help="names of the readers to run")
    parser.add_argument("--cache", default=ROOT / ".bench", help="where traces are kept")
    parser.add_argument("--results", default=ROOT / "bench" / "results", help="where results go")
    arguments = parser.parse_args()

    size, results = run(arguments)
    best, failed = report(size, results)
    targets = check(best)
    print()
    for line in targets:
        print(line["text"])
    now = datetime.datetime.now(datetime.timezone.utc)
    path = pathlib.Path(arguments.results) / f"{now:%Y%m%dT%H%M%SZ}-{arguments.mb}mb.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "time": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "trace": {"bytes": size, "mb": arguments.mb, "seed": arguments.seed},
        "runs": {name: [vars(r) for r in runs] for name, runs in results.items()},
        "targets": targets,
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
    print("\nwritten to", path, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
