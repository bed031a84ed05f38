"""Converts traces on Apache Spark.

    spark-submit --py-files tracelake_task.py tracelake_spark.py --program bin/tracelake INPUT... -o LAKE
    python -m tracelake_spark --master spark://host:7077 INPUT... -o LAKE [-- FLAGS OF convert]

Spark schedules, repeats what failed, replaces lost executors and starts copies of
slow tasks; each task runs the tracelake program over a few inputs. A row per
input is left in LAKE/_tracelake/catalog, in a directory of its own for each job
that ended, written by Spark's committer.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import typing
import uuid

import pyarrow as pa
import tracelake_task as task
from pyspark import SparkConf, SparkFiles, TaskContext
from pyspark.sql import DataFrame, SparkSession

# What a session gets unless it says otherwise. A copy of a slow task is started
# on another host; committing twice changes nothing.
DEFAULTS = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.75",
    "spark.speculation.multiplier": "3",
    "spark.speculation.minTaskRuntime": "60s",
    # Machines where much fails are left out.
    "spark.excludeOnFailure.enabled": "true",
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "50",
    "spark.excludeOnFailure.application.maxFailedTasksPerExecutor": "50",
    # One more than what is tried: Spark asks for more than PER_TASK.
    "spark.task.maxFailures": "5",
    # Version 2 makes the files of tasks visible before the job is over.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
}
# Where one task failed this often it is not tried again: with nowhere left to go
# it would end the job.
PER_TASK = ("spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor", "spark.excludeOnFailure.task.maxTaskAttemptsPerNode")

SCHEMA = ", ".join(f"{name} {kind}" for name, kind in task.COLUMNS.items())
ARROW = pa.schema([(name, {"bigint": "int64", "int": "int32"}.get(kind, kind)) for name, kind in task.COLUMNS.items()])


class Result(typing.NamedTuple):
    """What a job did."""

    inputs: int  # found
    held: int  # in the dataset before
    counts: dict[str, int]  # rows of this job by status
    catalog: str | None  # where its rows are; None where there was nothing to do
    notices: list[str]  # about the runs

    @property
    def ok(self) -> bool:
        return not (self.counts.get("rejected") or self.counts.get("failed"))


def session(master: str | None = None, **conf: str) -> SparkSession:
    """A session with the defaults for long tasks of unequal size."""
    c = SparkConf()
    for name, value in {**DEFAULTS, "spark.app.name": "tracelake"}.items():
        c.setIfMissing(name, value)
    for name, value in conf.items():
        c.set(name, value)
    for name in PER_TASK:
        c.setIfMissing(name, str(max(1, int(c.get("spark.task.maxFailures")) - 1)))
    if master:
        c.setMaster(master)
        if master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkSession.builder.config(conf=c).getOrCreate()


def convert(
    spark: SparkSession,
    inputs: typing.Iterable[str],
    lake: str,
    flags: typing.Sequence[str] = (),
    program: str = "",
    catalog: str = "",
    task_bytes: int = task.TASK_BYTES,
    timeout: float | None = None,
) -> Result:
    """Converts what the dataset does not hold yet.

    Inputs and the dataset must have the same path on every machine, or be URLs.
    program is a file to ship to the executors; without it each uses the
    tracelake that is installed there. Inputs that are no traces are rejected;
    all others are tried four times, or one time less than spark.task.maxFailures says.
    """
    here = task.find_program(program)
    lake = task.absolute(lake)
    catalog = catalog or _spark_url(lake) + "/_tracelake/catalog"
    listing = task.list_inputs(here, inputs, lake, flags)
    known = _known(spark, catalog)
    held = [r for r in listing.done if (r["path"], r["trace_id"]) not in known]
    groups = task.groups(listing.units, task_bytes)
    frames = []
    if groups:
        frames.append(_tasks(spark, groups, lake, tuple(flags), here if program else "", timeout))
    if held:
        frames.append(spark.createDataFrame(pa.Table.from_pylist(held, schema=ARROW)))
    if not frames:
        return Result(len(listing.reports), len(listing.done), {}, None, listing.notices)
    frame = frames[0] if len(frames) == 1 else frames[0].union(frames[1])
    # A directory for each job: what a killed driver leaves behind never becomes
    # part of what another one commits.
    job = f"job={datetime.datetime.now(datetime.timezone.utc):%Y%m%dt%H%M%S}-{uuid.uuid4().hex[:8]}"
    target = f"{catalog}/{job}"
    frame.write.parquet(target)
    counts = {r["status"]: r["count"] for r in spark.read.parquet(target).groupBy("status").count().collect()}
    after = task.list_inputs(here, inputs, lake, flags)
    return Result(len(listing.reports), len(listing.done), counts, target, after.notices)


def read_catalog(spark: SparkSession, catalog: str) -> DataFrame | None:
    """The rows of all jobs that ended, with the job of each; None before the first."""
    path = spark._jvm.org.apache.hadoop.fs.Path(catalog)
    files = path.getFileSystem(spark._jsc.hadoopConfiguration())
    done = files.globStatus(spark._jvm.org.apache.hadoop.fs.Path(catalog + "/job=*/_SUCCESS"))
    jobs = [str(s.getPath().getParent()) for s in done or []]
    if not jobs:
        return None
    return spark.read.option("basePath", catalog).schema(SCHEMA + ", job string").parquet(*jobs)


def _known(spark: SparkSession, catalog: str) -> set[tuple[str, str]]:
    frame = read_catalog(spark, catalog)
    if frame is None:
        return set()
    return {(r["path"], r["trace_id"]) for r in frame.where("status <> 'failed'").select("path", "trace_id").collect()}


def _tasks(
    spark: SparkSession, groups: list[list[str]], lake: str, flags: tuple[str, ...], program: str, timeout: float | None
) -> DataFrame:
    context = spark.sparkContext
    for module in (task.__file__, __file__):
        context.addPyFile(module)
    shipped = ""
    if program:
        context.addFile(program)
        shipped = os.path.basename(program)
    tries = _tries(context)
    work = context.broadcast(groups)

    def run(batches: typing.Iterable[pa.RecordBatch]) -> typing.Iterator[pa.RecordBatch]:
        found = SparkFiles.get(shipped) if shipped else task.find_program()
        now = TaskContext.get()
        jobs = ("-j", str(max(1, now.cpus())))
        for batch in batches:
            for index in batch.column(0).to_pylist():
                for unit in work.value[index]:
                    try:
                        rows = task.convert(found, unit, lake, (*jobs, *flags), timeout, now.attemptNumber())
                    except task.Failed as e:
                        if now.attemptNumber() + 1 < tries:
                            raise
                        rows = [task.failed(unit, e, now.attemptNumber())]
                    yield pa.RecordBatch.from_pylist(rows, schema=ARROW)

    n = len(groups)
    return spark.range(0, n, 1, n).mapInArrow(run, SCHEMA)


def _tries(context) -> int:
    """How often a task is tried before what fails becomes a row."""
    master, conf = context.master, context.getConf()
    if master.startswith("local") and "cluster" not in master:
        return int(master.rstrip("]").partition(",")[2] or 1)
    most = [int(conf.get("spark.task.maxFailures", "4"))]
    if conf.get("spark.excludeOnFailure.enabled", "false") == "true":
        most += [int(conf.get(name, default)) for name, default in zip(PER_TASK, ("1", "2"), strict=True)]
    return min(most)


def _spark_url(lake: str) -> str:
    """The name that Spark has for what the program calls lake."""
    if not task.is_url(lake):
        return "file://" + lake
    lake = task.clean(lake)
    return lake.replace("s3://", "s3a://", 1) if lake.startswith("s3://") else lake


def main(argv: list[str] | None = None) -> int:
    words, flags = task.split_words(sys.argv[1:] if argv is None else argv)
    p = task.parser("tracelake_spark", "Apache Spark")
    p.add_argument("--master", help="as for spark-submit, which sets it otherwise")
    p.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="setting of Spark (repeatable)")
    p.add_argument(
        "--program", default="", metavar="FILE", help="tracelake program to ship to the executors; default: what is installed there"
    )
    p.add_argument(
        "--catalog", default="", metavar="URL", help="where the rows of jobs go, as Spark names it (default: LAKE/_tracelake/catalog)"
    )
    a = p.parse_args(words)
    spark = session(a.master, **dict(c.split("=", 1) for c in a.conf))
    try:
        r = convert(spark, a.inputs, a.output, flags, a.program, a.catalog, a.task_bytes, a.timeout)
    except (task.Unusable, FileNotFoundError) as e:
        print(f"tracelake_spark: {e}", file=sys.stderr)
        return getattr(e, "code", 1)
    finally:
        spark.stop()
    for n in r.notices:
        print("notice   ", n, file=sys.stderr)
    print(json.dumps({"inputs": r.inputs, "held": r.held, **r.counts, "catalog": r.catalog}))
    return 0 if r.ok else 3


if __name__ == "__main__":
    sys.exit(main())
