"""Every store, asked through the commands: into it, out of it, again, merged, refused."""

import json
import re

import pytest
from lakes import ROOT

DEMO = ROOT / "testdata" / "demo"
COUNT = "SELECT trace_id, count(*) AS n, sum(dur_ns) AS ns FROM gpu_events GROUP BY 1 ORDER BY 1"


@pytest.fixture(params=["s3", "azure", "google"])
def store(request):
    return request.getfixturevalue(request.param)


def summary(p):
    return json.loads(p.stdout.splitlines()[-1])["summary"]


def test_convert_resume_query(store, command, tracelake, tmp_path):
    here, there, copy = tmp_path / "lake", store.url("all/lake"), tmp_path / "copy"
    tracelake("convert", "-q", DEMO / "serving", DEMO / "training-nsight", "-o", here)
    done = summary(command(store, "convert", "--json", DEMO / "serving", DEMO / "training-nsight", "-o", there))
    assert done["failed"] == 0 and done["ok"] == done["inputs"] >= 3
    again = summary(command(store, "convert", "--json", DEMO / "serving", DEMO / "training-nsight", "-o", there))
    assert again["skipped"] == done["inputs"]

    want = tracelake("sql", here, COUNT).stdout
    assert want.count("\n") > 3
    assert command(store, "sql", there, COUNT).stdout == want
    kernels = tracelake("analyze", "kernels", here).stdout
    assert kernels.count("\n") > 3 and command(store, "analyze", "kernels", there).stdout == kernels
    views = command(store, "views", there).stdout
    assert "read_parquet" in views and "127.0.0.1" not in views

    merged = json.loads(command(store, "compact", "--json", there).stdout)
    assert merged["merged_files"] > merged["new_files"] > 0
    assert command(store, "sql", there, COUNT).stdout == want
    swept = json.loads(command(store, "vacuum", "--json", "--older-than", "0s", there).stdout)
    assert swept["parts"] == 0
    forced = summary(command(store, "convert", "--json", "--force", DEMO / "serving", "-o", there, "--target-file-size", "64MB"))
    assert forced["ok"] == 2
    assert command(store, "sql", there, COUNT).stdout == want

    # Inputs in the store: the trace is one that was uploaded by a dataset of its own.
    name = upload(store, DEMO / "serving" / "rank0.pt.trace.json.gz", "in/rank0.pt.trace.json.gz")
    about = json.loads(command(store, "inspect", "--json", name).stdout)
    assert about["gpu_events"] == 464
    assert summary(command(store, "convert", "--json", store.url("in/"), "-o", copy))["ok"] == 1
    path = json.loads(tracelake("sql", copy, "SELECT path FROM traces", "--format", "json").stdout)["path"]
    assert path == re.sub(r"\?.*", "", name)
    assert summary(command(store, "convert", "--json", store.url("in/*.gz"), "-o", copy))["skipped"] == 1


def upload(store, file, key):
    store.upload(key, file.read_bytes())
    return store.url(key)


def test_refused(store, command, tmp_path):
    lake = tmp_path / "lake"
    missing = command(store, "convert", store.url("x.json", bucket="elsewhere"), "-o", lake, ok=(5,))
    assert "no such bucket" in missing.stderr
    missing = command(store, "convert", store.url("x.json"), "-o", lake, ok=(5,))
    assert "no such object" in missing.stderr
    missing = command(store, "sql", store.url("no/lake"), "SELECT 1", ok=(5,))
    assert "not a tracelake dataset" in missing.stderr
    if store.wrong:
        for args in (
            ("convert", store.url("in/"), "-o", lake),
            ("sql", store.url("all/lake"), "SELECT 1"),
            ("analyze", "kernels", store.url("all/lake")),
            ("inspect", store.url("in/rank0.pt.trace.json.gz")),
            ("compact", store.url("all/lake")),
            ("vacuum", store.url("all/lake")),
        ):
            p = command(store, *args, env=store.wrong, ok=(5,))
            assert "access denied" in p.stderr, (args, p.stderr)
            assert not [s for s in store.secrets if s in p.stdout + p.stderr]


def test_outputs(store, command, tracelake, tmp_path):
    """Pages, slices, records and redacted traces go into the store as they go into files."""
    trace, lake = DEMO / "serving" / "rank0.pt.trace.json.gz", tmp_path / "lake"
    tracelake("convert", "-q", trace, "-o", lake)
    for name, *args in (
        ("page.html", "report", lake, "--date", "today"),
        ("slice.json", "slice", lake),
        ("records.jsonl", "activities", trace),
        ("clean.json", "redact", trace, "--key", "k"),
    ):
        tracelake(*args, "-o", tmp_path / name)
        command(store, *args, "-o", store.url(f"out/{name}"))
        assert store.download(f"out/{name}") == (tmp_path / name).read_bytes(), name
    report = command(store, "redact", DEMO / "training-nsight", "-o", store.url("out/clean.sqlite"), ok=(2, 5)).stderr
    assert report.count("\n") == 1
    remote = store.url("out/lake")
    command(store, "convert", "-q", trace, "-o", remote)
    page = command(store, "report", remote, "-o", "-").stdout
    assert "out/lake" in page and "endpoint=" not in page and "127.0.0.1" not in page
    assert command(store, "slice", remote, "-o", "-").stdout == (tmp_path / "slice.json").read_text()
    rows = command(store, "diff", remote, lake, "--format", "csv").stdout
    assert rows.count("\n") > 1
