"""The wheel: built, installed into a new environment, and used as its users do."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import duckdb
import pytest
from conftest import ROOT

DEMO = ROOT / "testdata" / "demo"


@pytest.fixture(scope="module")
def wheel(binary, tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    version = subprocess.run([binary, "version", "--json"], capture_output=True, text=True, check=True)
    words = [ROOT / "scripts" / "wheel.sh", binary, json.loads(version.stdout)["version"], out, sys.executable]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """The Python of a new environment with the wheel; what it depends on comes from here."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    words = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # At the end of the path, as if installed: the environment's own packages come first.
    site = next(home.glob("lib/python*/site-packages"))
    (site / "deps.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def run(python, code, *args, cwd):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRACELAKE", "PYTHON"))}
    env["PATH"] = "/usr/bin:/bin"  # without any other tracelake
    done = subprocess.run([python, "-c", code, *map(str, args)], capture_output=True, text=True, cwd=cwd, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_contents(wheel, binary):
    names = zipfile.ZipFile(wheel).namelist()
    assert "tracelake/__init__.py" in names and "tracelake/py.typed" in names
    scripts = [n for n in names if n.endswith(".data/scripts/tracelake")]
    assert len(scripts) == 1
    assert zipfile.ZipFile(wheel).getinfo(scripts[0]).file_size == binary.stat().st_size
    assert re.search(r"-py3-none-(manylinux_2_\d+_(x86_64|aarch64)|macosx_\d+_\d+_(x86_64|arm64))\.whl$", wheel.name)


def test_command(fresh, tmp_path):
    """The command of the environment is the program itself."""
    command = fresh.parent / "tracelake"
    done = subprocess.run([command, "version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("tracelake ")
    lake = tmp_path / "lake"
    assert subprocess.run([command, "convert", "-q", DEMO, "-o", lake]).returncode == 0
    assert (lake / "traces").is_dir()


def test_module(fresh, tracelake, tmp_path):
    """The frames hold what the program prints."""
    code = """
import json, sys, tracelake
done = tracelake.convert(sys.argv[1], "lake", run="demo", jobs=2)
assert done.ok and len(done.reports) == done.summary["ok"] == 7
lake = tracelake.open("lake")
kernels = lake.kernels(top=3)
assert type(kernels).__module__.startswith("pandas"), type(kernels)
assert {"kernels", "kernel_sequences"} < set(dir(lake)), dir(lake)
gpu = lake.pandas("gpu_events", columns=["dur_ns", "rank", "correlation"])
print(json.dumps({
    "kernels": json.loads(kernels.to_json(orient="records")),
    "sequences": len(lake.kernel_sequences(run="demo")),
    "rows": [len(gpu), lake.polars("gpu_events").collect().height, lake.arrow("gpu_events").num_rows,
             lake.sql("SELECT count(*) FROM gpu_events").fetchall()[0][0]],
    "sums": [int(gpu.dur_ns.sum()), lake.polars("gpu_events").collect()["dur_ns"].sum(),
             int(lake.sql("SELECT sum(dur_ns) FROM gpu_events WHERE run = $run", run="demo").fetchall()[0][0])],
    "dtypes": [str(t) for t in gpu.dtypes],
    "tables": lake.tables, "binary": tracelake.binary(), "version": tracelake.__version__,
}))
"""
    got = json.loads(run(fresh, code, DEMO, cwd=tmp_path))
    p = tracelake("analyze", "kernels", tmp_path / "lake", "--top", "3", "--format", "json")
    want = [json.loads(x) for x in p.stdout.splitlines()]
    assert [k["name"] for k in got["kernels"]] == [k["name"] for k in want]
    assert [set(k) for k in got["kernels"]] == [set(k) for k in want]
    con = duckdb.connect()
    con.execute((tmp_path / "lake" / "_tracelake" / "views.sql").read_text())
    rows, total = con.sql("SELECT count(*), sum(dur_ns) FROM gpu_events").fetchall()[0]
    assert got["rows"] == [rows] * 4 and got["sums"] == [int(total)] * 3
    assert all("int64" in t for t in got["dtypes"])  # exact, also where null
    assert got["binary"] == str(fresh.parent / "tracelake") and "gpu_events" in got["tables"]


def test_errors(fresh, tmp_path):
    """What goes wrong says so, with the words of the program."""
    code = """
import pathlib, sys, tracelake
pathlib.Path("bad.json").write_text("<html></html>")
done = tracelake.convert(["bad.json", sys.argv[1]], "lake")
assert not done.ok and done.summary["rejected"] == 1 and done.summary["ok"] == 1
for call, kind, text in (
    (lambda: tracelake.convert("missing.json", "lake"), tracelake.Error, "missing.json"),
    (lambda: tracelake.convert(sys.argv[1], "lake", no_such_flag=1), tracelake.Error, "no-such-flag"),
    (lambda: tracelake.open("."), FileNotFoundError, "not a tracelake dataset"),
    (lambda: tracelake.open("lake").no_such_analysis, AttributeError, "kernels"),
    (lambda: tracelake.open("lake").pandas("no_such_table"), KeyError, "gpu_events"),
    (lambda: tracelake.open("lake").arrow("../lake"), ValueError, "no name"),
    (lambda: tracelake.open("lake").kernels(by="nonsense"), tracelake.Error, "nonsense"),
):
    try:
        call()
    except kind as e:
        assert text in str(e), e
    else:
        raise AssertionError(f"no {kind} about {text}")
print("done")
"""
    assert run(fresh, code, next((DEMO / "serving").glob("*.json.gz")), cwd=tmp_path) == "done\n"


def test_notebook(fresh, tmp_path):
    """The notebook of the documentation runs from the first cell to the last."""
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text())["cells"]
    code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    assert len(code.splitlines()) > 10 and "%" not in code
    (tmp_path / "testdata").symlink_to(ROOT / "testdata")
    run(fresh, code, cwd=tmp_path)


def test_platform_tag(tmp_path):
    """Binaries are told by their headers; others are refused."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "python" / "package" / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = tmp_path / "binary"
    elf = b"\x7fELF" + bytes(14) + b"%s\x00" + bytes(44)
    for data, tag in (
        (elf % b"\x3e", "manylinux_2_17_x86_64"),
        (elf % b"\xb7" + b"\0GLIBC_2.34\0GLIBC_2.3.4\0GLIBC_2.4\0", "manylinux_2_34_aarch64"),
        (b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01", "macosx_12_0_arm64"),
        (b"\xcf\xfa\xed\xfe\x07\x00\x00\x01", "macosx_12_0_x86_64"),
    ):
        path.write_bytes(data)
        assert module.platform_tag(path) == tag
    for data in (b"#!/bin/sh\n", elf % b"\x28"):
        path.write_bytes(data)
        with pytest.raises(SystemExit):
            module.platform_tag(path)
