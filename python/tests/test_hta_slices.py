"""HolisticTraceAnalysis opens slices, and reads from them what our tables hold."""

import json
from typing import NamedTuple

import pytest
from conftest import ROOT
from test_hta import Ours, answers, compare, interpreter, start_hta, trace_name


class Slice(NamedTuple):
    source: str  # below the shared traces, or of this repository
    iteration: str  # "" for the whole trace
    whole_us: bool  # its times are whole µs, which the package does not round


SLICES = {
    "resnet": Slice("torchrec/golden_training-log-resnet18/host_85866.1698107929560561434.pt.trace.json.gz", "2", True),
    "distributed": Slice("HolisticTraceAnalysis/trace_diff-control/control.json.gz", "1011", True),
    "serving": Slice("testdata/demo/serving/rank0.pt.trace.json.gz", "8", False),
    "report": Slice("testdata/demo/training-nsight/report.sqlite", "", False),
}


# Figures that both give for each of them.
COMPARED_ALWAYS = ("temporal", "types", "kernels", "overlap", "idle", "launches", "queue")


class Sliced:
    """The slices, what the package says of them, and what our tables hold of their sources."""

    def __init__(self, tracelake, shared, directory):
        self.sources, self.paths = {}, {}
        slices = directory / "slices"
        slices.mkdir()
        for name, s in SLICES.items():
            source = (ROOT if s.source.startswith("testdata/") else shared / "traces/kineto") / s.source
            flags = ["--iteration", s.iteration] if s.iteration else []
            self.paths[name] = slices / f"{name}.json.gz"
            tracelake("slice", source, *flags, "-o", self.paths[name])
            self.sources[name] = directory / f"{name}.lake"
            tracelake("convert", source, "-o", self.sources[name], "-q")
        process = start_hta(self.paths.values(), directory, "slices")
        self.ours = Ours(tracelake, slices, directory / "slices.lake")
        self.hta = answers(process, directory, "slices")
        self.tracelake = tracelake

    def ask(self, name, sql):
        return [json.loads(line) for line in self.tracelake("sql", self.sources[name], sql, "--format", "json").stdout.splitlines()]

    def of(self, name):
        """What of the source is in the slice of GPU work, as a condition."""
        it = SLICES[name].iteration
        return f"iteration_id = '{it}'" if it else "true"


@pytest.fixture(scope="module")
def sliced(tracelake, shared, tmp_path_factory):
    interpreter()
    return Sliced(tracelake, shared, tmp_path_factory.mktemp("slices"))


KINDS = {"gpu_kernel": "kernel", "gpu_memcpy": "gpu_memcpy", "gpu_memset": "gpu_memset"}


@pytest.mark.parametrize("name", SLICES)
def test_rows(sliced, name):
    """Every GPU event of the source's iteration is a row of the package, and no other."""
    theirs = sliced.hta[trace_name(sliced.paths[name])]
    assert "error" not in theirs, theirs
    mine = sliced.ask(name, f"SELECT kind, count(*) AS n FROM gpu_events WHERE {sliced.of(name)} GROUP BY kind")
    assert {k: v for k, v in theirs["rows"].items() if k in KINDS.values()} == {KINDS[r["kind"]]: r["n"] for r in mine}
    calls = sliced.ask(
        name,
        f"SELECT count(DISTINCT launch_id) AS n FROM gpu_events WHERE {sliced.of(name)} AND launch_id IS NOT NULL",
    )[0]["n"]
    assert sum(n for c, n in theirs["rows"].items() if c.endswith(("_runtime", "_driver"))) >= calls > 0


@pytest.mark.parametrize("name", SLICES)
def test_kernel_breakdown(sliced, name):
    """Its kernels are those of the source, with their total times."""
    theirs = sliced.hta[trace_name(sliced.paths[name])]["kernels"]["names"]
    rows = sliced.ask(name, f"SELECT name, count(*) AS n, sum(dur_ns) / 1000 AS us FROM gpu_events WHERE {sliced.of(name)} GROUP BY name")
    # Rounding a start up and an end down takes less than 2 µs from an event.
    error = {r["name"]: 0.001 if SLICES[name].whole_us else 2 * r["n"] for r in rows}
    kernels = {r["name"]: pytest.approx(r["us"], abs=error[r["name"]]) for r in rows}
    # It takes marks on the GPU's timeline for GPU work.
    marks = {r["name"] for r in sliced.ask(name, "SELECT DISTINCT name FROM ranges")} - kernels.keys()
    assert {n: total for n, _, total, *_ in theirs if n not in marks} == kernels
    assert len(rows) > 10


@pytest.mark.parametrize("name", [n for n, s in SLICES.items() if s.whole_us])
def test_figures(sliced, name):
    """All of its figures over a slice are ours over the same slice."""
    key = trace_name(sliced.paths[name])
    equal, different = compare({key: sliced.hta[key]}, {key: sliced.ours})
    assert different == {}
    assert set(COMPARED_ALWAYS) <= set(equal)
