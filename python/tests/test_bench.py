"""The plot and the targets of bench/, on made-up results."""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import plot  # noqa: E402
import run as bench_run  # noqa: E402
import targets  # noqa: E402
from measure import Run  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def trace(mix, mb, cpu):
    good = {"cpu_s": cpu, "wall_s": cpu, "rss_mib": 100.0, "status": 0, "output": ""}
    failed = good | {"cpu_s": 0.001, "status": 1}
    return {"mix": mix, "mb": mb, "bytes": mb * 1_000_000, "runs": {"A & B": [failed, good], "broken": [failed]}}


def test_plot():
    # The order of sizes and other mixes do not matter; failed runs do not count.
    document = {"traces": [trace("x", 1000, 10.0), trace("x", 10, 0.1), trace("y", 10, 5.0), trace("x", 100, 1.0)]}
    root = ElementTree.fromstring(plot.draw(document, "x"))
    lines = [
        [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        for line in root.iter(f"{SVG}polyline")
    ]
    assert [len(line) for line in lines] == [3, 3]
    cpu, memory = lines
    across = [x for x, _ in cpu]
    assert across == sorted(across)
    # The same cost per byte is a straight line, the same memory a level one.
    assert cpu[0][1] - cpu[1][1] == pytest.approx(cpu[1][1] - cpu[2][1], abs=0.2)
    assert cpu[0][1] > cpu[2][1]
    assert memory[0][1] == memory[2][1]
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert "A & B" in words
    assert "broken" not in words
    with pytest.raises(ValueError, match="no results"):
        plot.draw(document, "z")


def test_targets():
    def one(cpu, rss=100.0):
        return Run(cpu_s=cpu, wall_s=cpu, rss_mib=rss, status=0, output="")

    best = {"tracelake json, 1 proc": one(1.0), "stormlog": one(9.0), "sonic structs": one(2.6), "DuckDB read_json": one(16)}
    lines = {line["title"]: line for line in targets.check(best)}
    assert lines["CPU of HTA parse over tracelake"]["met"] is None
    reached = {name: (line["met"], line["at_limit"]) for name, line in lines.items() if line["met"] is not None}
    assert reached == {
        "CPU of stormlog over tracelake": (False, False),
        "CPU of sonic over tracelake": (True, True),
        "CPU of DuckDB over tracelake": (True, False),
    }


def test_cases_are_named_once():
    names = [name for name, *_ in bench_run.cases(pathlib.Path("c"), pathlib.Path("p"), pathlib.Path("g"))]
    assert len(names) == len(set(names))
    for _, command, _, peer in bench_run.cases(pathlib.Path("c"), pathlib.Path("p"), pathlib.Path("g")):
        assert not peer or pathlib.Path(command[1]).exists()
