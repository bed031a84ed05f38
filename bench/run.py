"""Throughput of tracelake against other readers, in one run on the same files.

    bench/run.py [--sizes 300] [--mixes serving] [--rounds 3] [--only NAME;...]

Makes traces with bench/gen, then runs every reader in turn, as many rounds as
every other one, so that a busy moment of the machine does not hit one of them
alone. CPU is user and system time of the process; of several rounds the fastest
counts. Prints a table per trace and the targets, writes everything to
bench/results/, and with several sizes a plot of time and memory against size
(bench/plot.py). Exits with 1 when a reader fails. Needs the standard library
only; the peers run in the Python environment of `make bench`.
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

import plot
from measure import measure
from targets import check

ROOT = pathlib.Path(__file__).resolve().parents[1]


# Mixes of events and the flags of bench/gen that make them.
MIXES = {
    "serving": [],
    "serving-minified": ["-minify"],
    "serving-2025": ["-layout", "2025"],
    "serving-no-stacks": ["-no-stacks"],
    "training": ["-mix", "training"],
    "training-no-stacks": ["-mix", "training", "-no-stacks"],
    "training-amd": ["-mix", "training", "-amd"],
    "decode": ["-mix", "decode", "-no-stacks"],
    "decode-amd": ["-mix", "decode", "-no-stacks", "-amd"],
}


def build(cache: pathlib.Path):
    for name in ("gen", "sonicbench"):
        command = ["go", "build", "-o", cache / "bin" / name, f"./bench/{name}"]
        subprocess.run(command, cwd=ROOT, check=True)


def prepare(cache: pathlib.Path, mix: str, mb: int, seed: int):
    """Returns the plain and the compressed trace; makes them when missing."""
    generator = cache / "bin" / "gen"
    # Another generator makes another trace.
    digest = hashlib.sha256()
    for source in sorted((ROOT / "bench" / "gen").glob("*.go")):
        digest.update(source.read_bytes())
    plain = cache / f"trace-{mix}-{mb}mb-{seed}-{digest.hexdigest()[:8]}.json"
    packed = plain.with_name(plain.name + ".gz")
    for path in (plain, packed):
        if not path.exists():
            print("writing", path, file=sys.stderr)
            partial = path.with_name("partial-" + path.name)
            words = [generator, "-mb", str(mb), "-seed", str(seed), *MIXES[mix], "-o", partial]
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
        ("polars read_json", "polars_json.py", [cache / "polars.parquet"]),
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


def run(arguments, cache, mix, mb):
    """Runs every reader on one trace. Returns its size and the runs by reader."""
    plain, packed = prepare(cache, mix, mb, arguments.seed)
    wanted = set(arguments.only.split(";")) if arguments.only else None
    results = {}
    for _ in range(arguments.rounds):
        for name, command, env, peer in cases(cache, plain, packed):
            if wanted and name not in wanted or peer and mb > arguments.peers_up_to:
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


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description="Throughput of tracelake against other readers.")
    parser.add_argument("--sizes", type=numbers, default=[300], help="sizes of the traces in MB, as 10,100,1000")
    parser.add_argument("--mixes", default="serving", help=f"mixes of events, of {', '.join(MIXES)}; or all")
    parser.add_argument("--seed", type=int, default=1, help="seed of the traces")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of every reader")
    parser.add_argument("--peers-up-to", type=int, default=1000, metavar="MB", help="largest trace for the Python readers")
    parser.add_argument("--only", default="", help="names of the readers to run, separated by semicolons")
    parser.add_argument("--cache", default=ROOT / ".bench", help="where traces are kept")
    parser.add_argument("--results", default=ROOT / "bench" / "results", help="where results go")
    arguments = parser.parse_args()
    mixes = list(MIXES) if arguments.mixes == "all" else arguments.mixes.split(",")
    if unknown := [mix for mix in mixes if mix not in MIXES]:
        parser.error(f"no mix {unknown[0]}: want some of {', '.join(MIXES)}")
    cache = pathlib.Path(arguments.cache)
    (cache / "bin").mkdir(parents=True, exist_ok=True)
    build(cache)

    now = datetime.datetime.now(datetime.timezone.utc)
    path = pathlib.Path(arguments.results) / f"{now:%Y%m%dT%H%M%SZ}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "time": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "seed": arguments.seed,
        "traces": [],
    }
    all_failed = []
    for mix in mixes:
        for mb in arguments.sizes:
            print(f"\n{mix}, {mb} MB")
            size, results = run(arguments, cache, mix, mb)
            best, failed = report(size, results)
            all_failed += failed
            targets = check(best)
            print()
            for line in targets:
                if line["met"] is not None:
                    print(line["text"])
            sys.stdout.flush()
            runs = {name: [vars(r) for r in runs] for name, runs in results.items()}
            document["traces"].append({"mix": mix, "mb": mb, "bytes": size, "runs": runs, "targets": targets})
            # After every trace, so that an interruption loses one of them at most.
            path.write_text(json.dumps(document, indent=2) + "\n")
    print("\nwritten to", path, file=sys.stderr)
    if len(arguments.sizes) > 1:
        for mix in mixes:
            picture = path.with_name(f"{path.stem}-{mix}.svg")
            picture.write_text(plot.draw(document, mix))
            print("plot in", picture, file=sys.stderr)
    return 1 if all_failed else 0


if __name__ == "__main__":
    sys.exit(main())
