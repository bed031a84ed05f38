"""The files of a dataset are no larger than what other writers make of the same rows."""

import pathlib
import subprocess
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import filesize  # noqa: E402


def test_size_beside_other_writers(tracelake, tmp_path):
    trace = tmp_path / "trace.json"
    subprocess.run(["go", "run", "./bench/gen", "-mb", "10", "-o", trace], cwd=ROOT, check=True)
    tracelake("convert", "--quiet", trace, "-o", tmp_path / "lake")
    totals = filesize.totals(tmp_path / "lake", pathlib.Path(tmp_path))
    whole = {name: sum(table[name] for table in totals.values()) for name in totals["cpu_events"]}
    assert set(whole) == {"tracelake", "pyarrow", "DuckDB", "polars"}
    best = min(size for name, size in whole.items() if name != "tracelake")
    assert whole["tracelake"] <= 1.15 * best, whole
    # The tables that grow with a trace; the footers of the small ones are most of them.
    for table in ("cpu_events", "gpu_events", "launches", "flows", "activities"):
        best = min(size for name, size in totals[table].items() if name != "tracelake")
        assert totals[table]["tracelake"] <= 1.15 * best, (table, totals[table])
