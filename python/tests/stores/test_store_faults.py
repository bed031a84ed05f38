"""What becomes of commands when a store fails: a clear outcome, in bounded time, without a secret anywhere."""

import contextlib
import json
import threading
import time

import pytest
from lakes import ROOT, commits, content

SERVING = ROOT / "testdata" / "demo" / "serving"
NAMES = [f"rank{i}.pt.trace.json.gz" for i in (0, 1)]


@pytest.fixture
def bad(s3, tmp_path, monkeypatch):
    """The store with the inputs in it, whose faults end with the test; afterwards nothing holds a secret."""
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setenv("TMPDIR", str(temp))
    for name in NAMES:
        s3.upload(f"in/{name}", (SERVING / name).read_bytes())
    s3.said = []
    yield s3
    s3.proxy.fault = None
    files = [p.read_bytes() for root in (tmp_path, s3.dir) for p in root.rglob("*") if p.is_file()]
    assert files and s3.said
    for secret in s3.secrets:
        assert not [s for s in s3.said if secret in s], "a command printed a secret"
        assert not [f for f in files if secret.encode() in f], "a file holds a secret"
    assert not list(temp.rglob("*")), "temporary files stay"


@pytest.fixture
def said(bad, command):
    def run(*args, **kw):
        p = command(bad, *args, **kw)
        bad.said.append(p.stdout + p.stderr)
        return p

    return run


@contextlib.contextmanager
def within(seconds):
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


def reports(p):
    out = [json.loads(line) for line in p.stdout.splitlines()]
    return {r["path"].rsplit("/", 1)[1]: r for r in out if "path" in r}, out[-1]["summary"]


def test_no_access(bad, said, tmp_path):
    lake = tmp_path / "lake"
    (tmp_path / "input.json").write_text("{}")
    for code, *args in (
        (5, "convert", "--json", bad.url("in/"), "-o", lake),
        (1, "convert", "--json", SERVING, "-o", bad.url("denied")),
        (5, "sql", bad.url("in"), "SELECT 1"),
    ):
        p = said(*args, env=bad.wrong, ok=(code,))
        assert "access denied" in p.stderr and p.stderr.count("\n") <= 2, p.stderr
    p = said("convert", "--json", SERVING, "-o", bad.url("lake", bucket="nowhere"), ok=(1,))
    assert "no such bucket" in p.stderr
    for option in ("profile", "access_key"):
        p = said("convert", f"{bad.url('in/')}&{option}={bad.secret}", "-o", lake, ok=(5,))
    p = said("convert", f"s3://{bad.access}:{bad.secret}@traces/in/", "-o", lake, ok=(5,))
    assert "credentials come from the environment" in p.stderr


def test_throttled_sometimes(bad, said, tracelake, tmp_path):
    tracelake("convert", "-q", SERVING, "-o", tmp_path / "want")
    turn = iter(range(10**9))
    bad.proxy.fault = lambda method, path: 503 if next(turn) % 4 == 0 else None
    said("convert", "--json", bad.url("in/"), "-o", bad.url("slow/lake"), "--run", "serving")
    bad.proxy.fault = None
    got = content(bad.dir / "slow" / "lake")
    want = content(tmp_path / "want")
    assert {t: n[0] for t, n in got.items()} == {t: n[0] for t, n in want.items()}
    assert got["gpu_events"] == want["gpu_events"]


def test_answers_cut_short(bad, said, tmp_path):
    """Bodies shorter than their Content-Length are read on from where they ended."""
    bad.proxy.fault = lambda method, path: ("cut", 20000) if method == "GET" and NAMES[0] in path else None
    before = bad.proxy.requests
    by_name, summary = reports(said("convert", "--json", bad.url("in/"), "-o", tmp_path / "lake"))
    assert bad.proxy.requests - before > 5, "nothing was cut short"
    assert summary["ok"] == 2 and by_name[NAMES[0]]["gpu_events"] == 464


def test_object_cut_short(bad, said, tmp_path):
    """An object that is itself cut off is imported as far as it goes, as a file would be."""
    whole = (SERVING / NAMES[0]).read_bytes()
    bad.upload("halves/half.json.gz", whole[: len(whole) // 2])
    bad.upload("halves/whole.json.gz", whole)
    by_name, _ = reports(said("convert", "--json", bad.url("halves/"), "-o", tmp_path / "lake", ok=(3,)))
    assert (by_name["half.json.gz"]["outcome"], by_name["whole.json.gz"]["outcome"]) == ("partial", "ok")


def test_objects_fail_for_ever(bad, said, tmp_path):
    """Objects that are never served whole fail alone, after a bounded number of requests."""
    faults = {"throttled": 503, "cut": ("cut", 0), "dropped": "drop", "fine": None}
    for name in faults:
        bad.upload(f"bad/{name}.json.gz", (SERVING / NAMES[0]).read_bytes())
    bad.proxy.fault = lambda method, path: next((f for n, f in faults.items() if method == "GET" and f"/{n}." in path), None)
    before = bad.proxy.requests
    with within(150):
        p = said("convert", "--json", "-j", 4, bad.url("bad/"), "-o", tmp_path / "lake", env=impatient(bad), ok=(3,))
    assert bad.proxy.requests - before < 100
    by_name, summary = reports(p)
    assert (summary["failed"], summary["ok"]) == (3, 1)
    assert by_name["fine.json.gz"]["outcome"] == "ok"
    for name, text in (("throttled", "fewer requests"), ("cut", "broke off"), ("dropped", "broke off")):
        assert text in by_name[f"{name}.json.gz"]["failed"]
    bad.proxy.fault = None
    _, summary = reports(said("convert", "--json", bad.url("bad/"), "-o", tmp_path / "lake"))
    assert summary["failed"] == 0 and summary["inputs"] == 4


def impatient(store):
    """The environment with a library of S3 that leaves it to the program to try again."""
    return {**store.env, "AWS_MAX_ATTEMPTS": "1"}


def test_server_gone_while_writing(bad, said, tmp_path):
    """The store of the dataset goes away after some commits, comes back, and the command is repeated."""
    inputs = tmp_path / "inputs"  # of which each is a trace of its own
    inputs.mkdir()
    for name in NAMES:
        (inputs / name).write_bytes((SERVING / name).read_bytes())
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}
    (inputs / "small.json").write_text(json.dumps({"traceEvents": [event]}))
    said("convert", "-q", inputs, "-o", bad.url("undisturbed"), "--run", "all")
    lake, gone = bad.url("disturbed"), threading.Event()

    def fault(method, path):
        if len(commits(bad.dir / "disturbed")) >= 1:
            gone.set()
        return "drop" if gone.is_set() else None

    bad.proxy.fault = fault
    with within(150):
        p = said("convert", "--json", "-j", 2, inputs, "-o", lake, "--run", "all", env=impatient(bad), ok=(1, 3, 5))
    assert "cannot be reached" in p.stderr + p.stdout
    assert 1 <= len(commits(bad.dir / "disturbed")) < 3
    bad.proxy.fault = None
    said("convert", "--json", inputs, "-o", lake, "--run", "all")
    assert commits(bad.dir / "disturbed") == commits(bad.dir / "undisturbed")
    assert content(bad.dir / "disturbed") == content(bad.dir / "undisturbed")
