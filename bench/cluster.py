"""What one worker and two take for the same traces, and what the terms of a larger cluster are.

    bench/cluster.py curve [--rounds 3] [--traces 16] [--mb 40]
    bench/cluster.py terms [--inputs 10000 100000]

curve converts generated traces on Spark (workers of one core on 127.0.0.1 and
127.0.0.2) and on Ray (one processor, two) in turn, and prints how often they
were converted per minute. terms measures what does not depend on the size of
traces: listing, tasks without work, the catalog. Needs the environment of
`make venv-cluster`, bin/tracelake, and Java for Spark; run it with
`.venv-cluster/bin/python`. Results are Markdown.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python" / "tests" / "cluster"), str(ROOT / "python" / "tests"), str(ROOT / "python" / "package" / "src")]

import spark_cluster  # noqa: E402
import tracelake_task as task  # noqa: E402

BINARY = pathlib.Path(os.environ.get("TRACELAKE_BIN", ROOT / "bin" / "tracelake")).absolute()
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def generate(folder: pathlib.Path, traces: int, mb: int):
    """Traces of one size and of different content, gzipped."""
    folder.mkdir(parents=True)
    gen = folder.parent / "gen"
    subprocess.run(["go", "build", "-o", gen, "./bench/gen"], check=True, cwd=ROOT)
    for i in range(traces):
        subprocess.run([gen, "-mb", str(mb), "-seed", str(i + 1), "-o", folder / f"{i}.json"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["gzip", "-1", folder / f"{i}.json"], check=True)


def commit_times(lake: pathlib.Path) -> list[float]:
    return sorted(p.stat().st_mtime for p in (lake / "_tracelake" / "commits").glob("*.json"))


def pace(lake: pathlib.Path, workers: int) -> float:
    """Traces per minute from the moment on when each worker has converted one: without the start of the engine."""
    times = commit_times(lake)
    return 60 * (len(times) - workers) / (times[-1] - times[workers - 1])


def on_spark(inputs, lake, workers, folder):
    cluster = spark_cluster.Cluster(folder, workers=workers)
    try:
        cluster.run("--program", BINARY, "--task-bytes", 1, inputs, "-o", lake, "--", "--run", "all")
    finally:
        cluster.close()


def on_ray(inputs, lake, workers, folder):
    env = {**spark_cluster.environment("127.0.0.1"), "RAY_OVERRIDE_RESOURCES": json.dumps({"CPU": workers})}
    words = [sys.executable, "-m", "tracelake_ray", "--program", BINARY, "--task-bytes", 1, inputs, "-o", lake, "--", "--run", "all"]
    subprocess.run([*map(str, words)], check=True, env=env, capture_output=True)


def curve(a):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tracelake-curve-", dir=a.scratch))
    inputs = pathlib.Path(a.keep).absolute() if a.keep else folder / "in"
    try:
        if not inputs.exists():
            generate(inputs, a.traces, a.mb)
        print(f"{a.traces} traces of {a.mb} MB of JSON, gzipped\n")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for i in range(a.traces):
            subprocess.run([BINARY, "convert", "-q", "-j", "1", "--member", inputs / f"{i}.json.gz", "-o", folder / "alone"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / a.traces
        print(f"one conversion: {cpu:.2f} s of CPU\n")
        print("| engine | traces per minute: 1 worker | 2 workers | ratio | whole job: 1 worker | 2 workers | load |")
        print("|---|---|---|---|---|---|---|")
        engines = {"Spark": on_spark, "Ray": on_ray}
        for _ in range(a.rounds):
            for name in a.engines:
                found, took = [], []
                for workers in (1, 2):
                    lake, place = folder / "lake", folder / "place"
                    place.mkdir()
                    start = time.monotonic()
                    engines[name](inputs, lake, workers, place)
                    took.append(time.monotonic() - start)
                    assert len(commit_times(lake)) == a.traces
                    found.append(pace(lake, workers))
                    shutil.rmtree(lake)
                    shutil.rmtree(place)
                ratio = found[1] / found[0]
                figures = [f"{found[0]:.0f}", f"{found[1]:.0f}", f"{ratio:.2f}", f"{took[0]:.0f} s", f"{took[1]:.0f} s"]
                print(f"| {name} | {' | '.join(figures)} | {os.getloadavg()[0]:.0f} |", flush=True)
    finally:
        shutil.rmtree(folder)


def rows(n: int) -> list[dict]:
    """Rows of a catalog as conversions make them."""
    out = []
    for i in range(n):
        row = dict.fromkeys(task.COLUMNS)
        row.update(path=f"/shared/traces/run{i // 1000}/rank{i}.json.gz", unit=f"/shared/traces/run{i // 1000}/rank{i}.json.gz")
        row.update(status="ok", outcome="ok", trace_id=uuid.uuid4().hex, run=f"run{i // 1000}", rank=i, bytes=i, events=i, gpu_events=i)
        out.append({**row, "seconds": 0.1, "host": "node", "attempt": 0})
    return out


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_child(function, *words) -> dict:
    """What a function prints in a process of its own, whose memory is its alone."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", function, *map(str, words)],
        check=True,
        env=spark_cluster.environment("127.0.0.1"),
        stdout=subprocess.PIPE,
    )
    return json.loads(done.stdout)


def listing(n: int, folder: pathlib.Path) -> dict:
    """convert --list over inputs that nobody has converted, and what the driver keeps of them."""
    inputs = folder / f"in{n}"
    for i in range(n):
        place = inputs / str(i // 1000)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i}.json").write_text('{"traceEvents":[{"ph":"X","name":"k","pid":1,"tid":1,"ts":%d,"dur":5}]}' % i)  # noqa: UP031
    return in_child("list", inputs, folder / f"lake{n}")


def child_list(inputs: str, lake: str) -> dict:
    before, start = peak_mib(), time.monotonic()
    found = task.list_inputs(str(BINARY), [inputs], lake)
    wall = time.monotonic() - start
    groups = task.groups(found.units, task.TASK_BYTES)
    program = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "inputs": len(found.reports),
        "groups": len(groups),
        "wall": wall,
        "cpu": program.ru_utime + program.ru_stime,
        "program_mib": program.ru_maxrss / 1024,
        "driver_mib": peak_mib() - before,
    }


def child_catalog(n: str, folder: str) -> dict:
    """Rows written by Spark's committer and read again, as a job does with what the dataset held before."""
    import pyarrow as pa
    import tracelake_spark as spark

    session = spark.session("local[1]", **QUIET, **{"spark.driver.memory": "1g"})
    made = rows(int(n))
    spark.read_catalog(session, f"file://{folder}")  # the first use of the file system is not counted
    start = time.monotonic()
    frame = session.createDataFrame(pa.Table.from_pylist(made, schema=spark.ARROW))
    frame.write.parquet(f"file://{folder}/job=1")
    wrote = time.monotonic() - start
    start = time.monotonic()
    known = spark._known(session, f"file://{folder}")
    read = time.monotonic() - start
    assert len(known) == int(n)
    size = sum(p.stat().st_size for p in pathlib.Path(folder).rglob("*.parquet"))
    session.stop()
    return {"wrote": wrote, "read": read, "bytes": size, "driver_mib": peak_mib()}


def child_tasks(n: str, url: str) -> dict:
    """Tasks that do nothing, through Python as conversions are."""
    import tracelake_spark as spark

    conf = {**QUIET, "spark.driver.host": "127.0.0.1", "spark.executor.memory": "500m", "spark.driver.memory": "600m"}
    session = spark.session(url, **conf)
    frame = session.range(0, int(n), 1, int(n)).mapInArrow(lambda batches: batches, "id bigint")
    frame.limit(2).collect()  # executors and their Python are there
    start = time.monotonic()
    assert frame.count() == int(n)
    took = time.monotonic() - start
    session.stop()
    return {"ms": 1000 * took / int(n)}


CHILDREN = {"list": child_list, "catalog": child_catalog, "tasks": child_tasks}


def terms(a):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tracelake-terms-", dir=a.scratch))
    try:
        print("| inputs | `--list`, nothing there | CPU | memory of it | memory of the driver |\n|---|---|---|---|---|")
        for n in a.inputs:
            r = listing(n, folder)
            assert r["inputs"] == n
            print(f"| {n} | {r['wall']:.1f} s | {r['cpu']:.1f} s | {r['program_mib']:.0f} MiB | {r['driver_mib']:.0f} MiB |", flush=True)
            shutil.rmtree(folder / f"in{n}")
        print("\n| rows of the catalog | written | read by the next job | bytes |\n|---|---|---|---|")
        for n in a.inputs:
            r = in_child("catalog", n, folder / f"catalog{n}")
            print(f"| {n} | {r['wrote']:.1f} s | {r['read']:.1f} s | {r['bytes']} |", flush=True)
        (folder / "cluster").mkdir()
        cluster = spark_cluster.Cluster(folder / "cluster")
        try:
            found = [in_child("tasks", 2000, cluster.url)["ms"] for _ in range(a.rounds)]
        finally:
            cluster.close()
        print(f"\nSpark, two workers of one core: {min(found):.1f} ms per task without work (median {statistics.median(found):.1f})")
        print(f"load {os.getloadavg()[0]:.0f}")
    finally:
        shutil.rmtree(folder)


def main():
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(CHILDREN[sys.argv[2]](*sys.argv[3:])))
        return
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["curve", "terms"])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--traces", type=int, default=16)
    p.add_argument("--mb", type=int, default=40)
    p.add_argument("--engines", nargs="+", choices=["Spark", "Ray"], default=["Spark", "Ray"])
    p.add_argument("--inputs", type=int, nargs="+", default=[10_000, 100_000])
    p.add_argument("--keep", metavar="DIR", help="curve: make the traces there, or take those that are there")
    p.add_argument("--scratch", help="directory for traces and datasets")
    a = p.parse_args()
    {"curve": curve, "terms": terms}[a.what](a)


if __name__ == "__main__":
    main()
