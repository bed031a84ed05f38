"""The command line: exit codes, streams, standard input, interruption."""

import gzip
import json
import signal
import subprocess
import time

import duckdb
from conftest import ROOT

DEMO = ROOT / "testdata" / "demo"
VISIBLE = ROOT / "testdata" / "visible"


def test_usage_errors(tracelake, tmp_path):
    """Usage errors exit with 2 and say what is wrong on stderr only."""
    for args in (
        ["convert"],
        ["convert", DEMO],
        ["convert", DEMO, "-o", tmp_path / "l", "--format", "csv"],
        ["convert", DEMO, "-o", tmp_path / "l", "--compression", "lzma"],
        ["convert", DEMO, "-o", tmp_path / "l", "--no-such-flag"],
        ["convert", DEMO, "-o", tmp_path / "l", "--range-pattern", "step_["],
        ["convert", DEMO, "-o", tmp_path / "l", "--range-pattern", "step"],
        ["convert", DEMO, "-o", tmp_path / "l", "--device-uuid", "a=b"],
        ["convert", DEMO, "-o", tmp_path / "l", "--device-uuid", "0=A", "--device-uuid", "0=B"],
        ["activities"],
        ["activities", VISIBLE / "09_same_stream_overlap.json", "--compat", "other"],
        ["activities", VISIBLE / "09_same_stream_overlap.json", "--detail", "event"],
        ["inspect"],
        ["compact"],
        ["vacuum", "a", "b"],
        ["views"],
        ["analyze", "kernels", "a", "b"],
        ["analyze", "summary", DEMO, "--iteration", "1"],
        ["analyze", "fx_to_kernels", DEMO, "--rank", "0"],
        ["analyze", "trust", DEMO, "--set", "from_ns=1"],
        ["analyze", "kernels", DEMO, "--devices", "peaks.csv"],
        ["version", "x"],
        ["no-such-command"],
    ):
        p = tracelake(*args, ok=(2,))
        assert p.stdout == "" and p.stderr.startswith("tracelake: "), args


def test_input_errors(tracelake, tmp_path):
    p = tracelake("inspect", tmp_path / "missing.json", ok=(5,))
    assert "missing.json" in p.stderr
    bad = tmp_path / "bad.json"
    bad.write_text("<html></html>")
    assert "HTML" in tracelake("inspect", bad, ok=(5,)).stdout
    assert "HTML" in tracelake("activities", bad, ok=(5,)).stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no traces found" in tracelake("convert", empty, "-o", tmp_path / "l", ok=(5,)).stderr
    # A directory that holds something else is not written to.
    assert "not a tracelake dataset" in tracelake("convert", DEMO, "-o", DEMO, ok=(1,)).stderr


def test_streams(tracelake, tmp_path):
    """Without --json stdout is empty; with it, it holds JSON lines only."""
    p = tracelake("convert", DEMO, "-o", tmp_path / "a")
    assert p.stdout == "" and p.stderr.count("\n") >= 8 and "\r" not in p.stderr
    p = tracelake("convert", "--json", DEMO, "-o", tmp_path / "b")
    lines = [json.loads(x) for x in p.stdout.splitlines()]
    assert [set(x) for x in lines[-1:]] == [{"summary"}]
    assert len(lines) == 8 and all(x["outcome"] == "ok" and x["trace_id"] for x in lines[:-1])
    p = tracelake("convert", "-q", DEMO, "-o", tmp_path / "c")
    assert p.stdout == "" and "inputs" not in p.stderr


def test_standard_input(binary, tmp_path):
    """A stream gives the rows that the file gives, compressed or not."""
    source = VISIBLE / "12_graph_one_to_many.json"
    rows = []
    for name, data in (("plain", source.read_bytes()), ("gz", gzip.compress(source.read_bytes()))):
        lake = tmp_path / name
        p = subprocess.run([binary, "convert", "-q", "-", "-o", lake], input=data, capture_output=True, timeout=60)
        assert p.returncode == 0, p.stderr
        rows.append(duckdb.sql(f"select * exclude (run, rank) from read_parquet('{lake}/gpu_events/**/*.parquet')").fetchall())
    assert rows[0] == rows[1] and len(rows[0]) == 8


def test_range_pattern(tracelake, tmp_path):
    """A pattern of the user goes before all built-in marks."""
    trace = tmp_path / "t.json"
    trace.write_text(
        json.dumps(
            {
                "traceEvents": [
                    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 100},
                    {"ph": "X", "cat": "user_annotation", "name": "batch-17", "pid": 1, "tid": 2, "ts": 5, "dur": 20},
                    {
                        "ph": "X",
                        "cat": "cuda_runtime",
                        "name": "cudaLaunchKernel",
                        "pid": 1,
                        "tid": 3,
                        "ts": 10,
                        "dur": 1,
                        "args": {"correlation": 5},
                    },
                    {
                        "ph": "X",
                        "cat": "kernel",
                        "name": "k",
                        "pid": 0,
                        "tid": 7,
                        "ts": 20,
                        "dur": 5,
                        "args": {"device": 0, "stream": 7, "correlation": 5},
                    },
                ]
            }
        )
    )
    for args, want in (([], ("ProfilerStep", "1")), (["--range-pattern", r"job=batch-(\d+)"], ("job", "17"))):
        lake = tmp_path / f"lake{len(args)}"
        tracelake("convert", "-q", trace, "-o", lake, *args)
        sql = f"select iteration_producer, iteration_id from read_parquet('{lake}/gpu_events/**/*.parquet')"
        assert duckdb.sql(sql).fetchall() == [want]


def test_tables(tracelake, tmp_path):
    lake = tmp_path / "lake"
    tracelake("convert", "-q", DEMO, "-o", lake, "--tables", "gpu_events")
    assert sorted(p.name for p in lake.iterdir()) == ["_tracelake", "diagnostics", "gpu_events", "traces"]
    assert json.loads(tracelake("sql", lake, "select count(*) as n from gpu_events", "--format", "json").stdout) == {"n": 1165}


def test_arrow(tracelake, tmp_path):
    """Arrow files hold the rows of the Parquet files."""
    import polars as pl

    tracelake("convert", "-q", DEMO, "-o", tmp_path / "p", "--row-group", "300")
    tracelake("convert", "-q", DEMO, "-o", tmp_path / "a", "--format", "arrow", "--row-group", "300")
    for table in ("gpu_events", "launches", "cpu_events", "activities", "traces"):
        a = pl.concat([pl.read_ipc(f) for f in sorted((tmp_path / "a" / table).glob("**/*.arrow"))])
        p = pl.concat([pl.read_parquet(f, hive_partitioning=False) for f in sorted((tmp_path / "p" / table).glob("**/*.parquet"))])
        key = [c for c in ("trace_id", "event_index", "activity_id") if c in a.columns]
        assert a.sort(key).equals(p.sort(key)), table
    assert "Arrow" in tracelake("sql", tmp_path / "a", "select 1", ok=(1,)).stderr


def test_interrupt(binary, tmp_path):
    """A signal ends a run with its own code; the same command completes it."""
    many = tmp_path / "in"
    many.mkdir()
    text = gzip.decompress((DEMO / "serving" / "rank0.pt.trace.json.gz").read_bytes())
    for i in range(40):
        (many / f"t{i}.json").write_bytes(text.replace(b'"trace_id": "', b'"trace_id": "%04d' % i))
    lake = tmp_path / "lake"
    command = [binary, "convert", "--json", many, "-o", lake, "--run", "r"]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.readline()
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 130 and "resumes" in err
    done = len(list((lake / "_tracelake" / "commits").glob("*.json")))
    assert 0 < done < 40
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.15)
    p.kill()
    p.wait()
    out = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert out.returncode == 0
    summary = json.loads(out.stdout.splitlines()[-1])["summary"]
    assert summary["done"] + summary["skipped"] == 40 and summary["skipped"] >= done
    n = duckdb.sql(f"select count(distinct trace_id), count(*) from read_parquet('{lake}/gpu_events/**/*.parquet')").fetchall()
    assert n == [(40, 40 * 464)]


def test_killed_query_leaves_nothing_for_long(binary, tracelake, tmp_path, monkeypatch):
    """What a killed query leaves in the temporary directory goes with the next one."""
    tracelake("convert", DEMO / "serving", "-o", tmp_path / "lake", "-q")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    endless = "SELECT count(*) FROM range(1000000000000) AS a(i) WHERE i % 7 = 8"
    p = subprocess.Popen([binary, "sql", tmp_path / "lake", endless], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if any(d.is_dir() for d in scratch.iterdir()):
            break
        time.sleep(0.05)
    assert any(d.is_dir() for d in scratch.iterdir())
    tracelake("sql", tmp_path / "lake", "SELECT 1")
    assert len([d for d in scratch.iterdir() if d.is_dir()]) == 1, "that of a living query is gone"
    p.kill()
    p.wait()
    tracelake("sql", tmp_path / "lake", "SELECT 1")
    assert list(scratch.iterdir()) == []
