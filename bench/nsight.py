"""Reading Nsight Systems exports: tracelake against other readers, on one file.

    bench/nsight.py [--kernels 2000000] [--rounds 3] [--only NAME,...]

Makes a report with bench/nsysgen (about 130 bytes per kernel and its call),
runs every reader in turn, and prints CPU (user and system), wall time and peak
memory of the fastest round. "import" writes the dataset; "read" stops at the
columns in memory. DuckDB needs --duckdb-python, a Python with duckdb, pyarrow
and duckdb-extension-sqlite-scanner of one version. Exits with 1 when a reader
fails.
"""

import argparse
import hashlib
import pathlib
import shutil
import subprocess
import sys

from measure import measure

ROOT = pathlib.Path(__file__).resolve().parents[1]


def prepare(cache, kernels):
    for name in ("nsysgen", "nsysread"):
        subprocess.run(["go", "build", "-o", cache / "bin" / name, f"./bench/{name}"], cwd=ROOT, check=True)
    digest = hashlib.sha256()
    for source in sorted((ROOT / "bench" / "nsysgen").glob("*.go")):
        digest.update(source.read_bytes())
    path = cache / f"report-{kernels}-{digest.hexdigest()[:8]}.sqlite"
    if not path.exists():
        print("writing", path, file=sys.stderr)
        partial = path.with_name("partial-" + path.name)
        subprocess.run([cache / "bin" / "nsysgen", "-kernels", str(kernels), "-o", partial], check=True)
        partial.rename(path)
    return path


def cases(cache, report, arguments):
    """The readers: name, command, environment, and whether it is run once."""
    convert = [ROOT / "bin" / "tracelake", "convert", "--quiet", "-o", cache / "lake", report]
    read = cache / "bin" / "nsysread"
    peers = ROOT / "bench" / "peers"
    one = {"GOMAXPROCS": "1"}
    yield "tracelake import", convert, one, False
    yield "tracelake import, 2 proc", convert, {"GOMAXPROCS": "2"}, False
    yield "tracelake import, library", [*convert, "--sqlite", "library"], one, False
    yield "tracelake read", [read, report], one, False
    yield "tracelake read, library", [read, "-library", report], one, False
    yield "Python sqlite3 read", [sys.executable, peers / "sqlite3_rows.py", report], {}, True
    if arguments.duckdb_python:
        yield "DuckDB read", [arguments.duckdb_python, peers / "duckdb_sqlite.py", report], {}, True
    yield "stormlog load, capture", [sys.executable, peers / "stormlog_nsys.py", report], {}, True
    yield "stormlog with records", [sys.executable, peers / "stormlog_nsys.py", report, "--records"], {}, True


TARGETS = (
    ("stormlog with records over import", "stormlog with records", "tracelake import", 30.0),
    ("stormlog with records over import, library", "stormlog with records", "tracelake import, library", 10.0),
    ("DuckDB over read", "DuckDB read", "tracelake read", 1.0),
)


def main():
    parser = argparse.ArgumentParser(description="Reading Nsight Systems exports.")
    parser.add_argument("--kernels", type=int, default=2_000_000, help="kernels in the report")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the Go programs")
    parser.add_argument("--only", default="", help="names of the readers to run, separated by semicolons")
    parser.add_argument("--cache", default=ROOT / ".bench", help="where reports are kept")
    parser.add_argument("--duckdb-python", default="", help="Python that has DuckDB's SQLite scanner")
    arguments = parser.parse_args()
    cache = pathlib.Path(arguments.cache)
    (cache / "bin").mkdir(parents=True, exist_ok=True)
    report = prepare(cache, arguments.kernels)
    wanted = set(arguments.only.split(";")) if arguments.only else None
    best, failed = {}, False
    for number in range(arguments.rounds):
        for name, command, env, once in cases(cache, report, arguments):
            if wanted and name not in wanted or once and number:
                continue
            shutil.rmtree(cache / "lake", ignore_errors=True)
            result = measure(command, cache / "log", env)
            print(f"{name:26} {result.cpu_s:7.2f} s CPU {result.rss_mib:7.0f} MiB  {result.output}", file=sys.stderr)
            if result.status:
                failed = True
            elif name not in best or result.cpu_s < best[name].cpu_s:
                best[name] = result
    shutil.rmtree(cache / "lake", ignore_errors=True)
    size = report.stat().st_size
    print(f"{size / 1e6:.0f} MB, {arguments.kernels} kernels and as many calls")
    print(f"{'reader':26} {'CPU s':>8} {'wall s':>8} {'RSS MiB':>8} {'MB/CPU-s':>9}")
    for name, r in best.items():
        print(f"{name:26} {r.cpu_s:8.2f} {r.wall_s:8.2f} {r.rss_mib:8.0f} {size / 1e6 / r.cpu_s:9.1f}")
    for title, peer, ours, bound in TARGETS:
        if peer in best and ours in best:
            ratio = best[peer].cpu_s / best[ours].cpu_s
            print(f"{'ok  ' if ratio >= bound else 'MISS'}  CPU of {title}: {ratio:.1f}, target >= {bound:g}")
        else:
            print(f"  ?   CPU of {title}: not measured")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
