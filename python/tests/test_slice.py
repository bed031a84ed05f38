"""Slices open in readers of Kineto traces."""

import gzip
import json

import pytest
from conftest import ROOT


def events_of(path):
    with gzip.open(path) as f:
        return json.load(f)["traceEvents"]


@pytest.mark.parametrize("name", ["rank0.pt.trace.json.gz", "rank1.pt.trace.json.gz"])
def test_stormlog_reads_a_slice(tracelake, tmp_path, name):
    kineto = pytest.importorskip("stormlog.infer.trace_kineto")
    source = ROOT / "testdata/demo/serving" / name
    part = tmp_path / name
    tracelake("slice", source, "-o", part, "--keep-overlaps")
    whole, again = kineto.load_kineto_trace(source), kineto.load_kineto_trace(part)
    assert len(whole.gpu_events) > 100
    assert again.gpu_events == whole.gpu_events
    assert again.launches == whole.launches
    assert again.spans == whole.spans
    assert (again.base_ns, again.rank, again.world_size) == (whole.base_ns, whole.rank, whole.world_size)


def test_window_nests_for_viewers(tracelake, tmp_path):
    """On each thread events nest, as Perfetto and chrome://tracing require."""
    part = tmp_path / "part.json.gz"
    tracelake("slice", ROOT / "testdata/demo/serving/rank0.pt.trace.json.gz", "-o", part)
    threads = {}
    gpu = 0
    for e in events_of(part):
        assert e["ph"] in "XMCsftib", e
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            gpu += 1
            start = round(e["ts"] * 1000)
            threads.setdefault((e["pid"], e["tid"]), []).append((start, -start - round(e["dur"] * 1000)))
    assert gpu > 100
    for rows in threads.values():
        ends = []
        for start, end in sorted(rows):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or -end <= ends[-1] + 1
            ends.append(-end)
