"""Inputs after public bug reports: each gives the outcome that its page states."""

import json
import re

import duckdb
import pytest
from conftest import ROOT

CASES = ROOT / "testdata" / "visible"
NAMES = sorted(p.name.removesuffix(".expect.md") for p in CASES.glob("*.expect.md"))


def expectation(name):
    text = (CASES / f"{name}.expect.md").read_text()
    return json.loads(re.search(r"```json\n(.*?)```", text, re.S).group(1))


def one_of(want, got):
    return got in want if isinstance(want, list) else got == want


@pytest.mark.parametrize("name", NAMES)
def test_case(tracelake, tmp_path, name):
    want = expectation(name)
    source = next(p for p in CASES.glob(f"{name}.*") if not p.name.endswith(".md"))
    lake = tmp_path / "lake"
    p = tracelake("convert", "--json", source, "-o", lake, ok=(0, 3))
    report = json.loads(p.stdout.splitlines()[0])
    assert report["outcome"] in want["outcome"]
    assert p.returncode == (3 if report["outcome"] in ("partial", "rejected") else 0)
    con = duckdb.connect()

    def q(sql):
        table = re.sub(r"@(\w+)", lambda m: f"read_parquet('{lake}/{m[1]}/**/*.parquet')", sql)
        return con.execute(table).fetchall()

    base = q("select coalesce(base_ns, 0) from @traces")[0][0]
    assert q("select outcome from @traces") == [(report["outcome"],)]

    cats = dict(
        q(
            """select category, count(*) from (
                 select category from @gpu_events union all select category from @launches
                 union all select category from @ranges union all select category from @cpu_events) group by 1"""
        )
    )
    expected = dict(want["duration_events_by_cat"])
    if report["outcome"] == "partial" and "repaired" in want["outcome"]:
        assert sum(expected.values()) - sum(cats.values()) == report["lost_events"]
    else:
        assert cats == expected

    assert q("select count(*) from @gpu_events")[0][0] == want["gpu_events"]
    status = dict(q("select link_status, count(*) from @gpu_events group by 1"))
    assert [status.get(s, 0) for s in ("linked", "unlinked", "ambiguous")] == [
        want["linked"],
        want["unlinked"],
        want["ambiguous"],
    ]
    assert q("select count(*) from @launches")[0][0] == want["host_runtime_calls"]
    assert q("select count(*) from @launches where gpu_event_count = 0")[0][0] == want["host_runtime_calls_without_gpu_event"]
    devices = q("select ordinal, busy_ns, summed_ns from @devices where gpu_events > 0")
    assert {str(d): b for d, b, _ in devices} == want["busy_ns"]
    assert {str(d): s for d, _, s in devices} == want["sum_ns"]

    links = q(
        """select g.name, g.start_ns, g.link_status, l.api, l.pid, l.start_ns, g.start_ns - l.start_ns, r.name
           from @gpu_events g left join @launches l on l.event_index = g.launch_id
           left join @ranges r on r.event_index = g.iteration_range order by g.start_ns"""
    )
    got = [
        {
            "gpu": n,
            "start_ns": s - base,
            "status": st,
            "launch": api,
            "launch_pid": pid,
            "launch_start_ns": None if ls is None else ls - base,
            "latency_ns": lat,
            "iteration": it,
        }
        for n, s, st, api, pid, ls, lat, it in links
    ]
    assert got == sorted(want["links"], key=lambda x: x["start_ns"])

    names = {r[0] for r in q("select name from @cpu_events")}
    for n in [*want.get("names_exact", []), *([want["name_exact"]] if "name_exact" in want else [])]:
        assert n in names
    if "repairs" in want:
        assert report["repairs"] == want["repairs"]
        assert all("byte_offset" in d for d in report["diagnostics"] if d["severity"] == "repair")
    if "cut_offset" in want:
        cut = [d for d in report["diagnostics"] if d["code"] == "text_cut"]
        assert [d["byte_offset"] for d in cut] == [want["cut_offset"]]
    if "flagged" in want:
        flagged = q("select time_flag from @gpu_events union all select time_flag from @cpu_events")
        assert sum(f[0] is not None for f in flagged) == want["flagged"]
    if "iterations" in want:
        assert report["iterations"] == want["iterations"]
    if "rank" in want:
        assert (report["rank"], report["world_size"]) == (want["rank"], want["world_size"])
        assert any(d["code"] == "rank_conflict" for d in report["diagnostics"])
        assert list((lake / "gpu_events").glob(f"run=*/rank={want['rank']}/*.parquet"))
    if "launch_time_sum_ns" in want:
        assert q("select sum(dur_ns) from @launches where gpu_event_count > 0")[0][0] == want["launch_time_sum_ns"]
    if "null_args" in want:
        row = q("select occupancy_pct, bandwidth_gbps, args_json from @gpu_events where correlation = 101")[0]
        assert list(row[:2]) == [None] * want["null_args"]
        args = json.loads(row[2])  # the words stay readable, and the quoted one is no repair
        assert args["note"] == args["est. achieved occupancy %"] == "N/A"
        assert 12.5 in {r[0] for r in q("select bandwidth_gbps from @gpu_events")}
    if "exposed_comm_ns" in want:  # one device: what compute does not cover
        compute = q("select sum(dur_ns) from @gpu_events where name not like 'nccl%'")[0][0]
        assert want["busy_ns"]["0"] - compute == want["exposed_comm_ns"]


def test_strict_rejects_what_is_not_ok(tracelake, tmp_path):
    p = tracelake("convert", "--strict", "--json", CASES / "05_truncated.json", "-o", tmp_path / "lake", ok=(3,))
    report = json.loads(p.stdout.splitlines()[0])
    assert report["outcome"] == "rejected"
    assert "strict" in report["reason"]
