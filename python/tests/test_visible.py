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
    pattern = ["--range-pattern", r"step=(\d+)"] if "kernels_per_range" in want else []
    p = tracelake("convert", "--json", *pattern, source, "-o", lake, ok=(0, 3))
    report = json.loads(p.stdout.splitlines()[0])
    assert report["outcome"] in want["outcome"]
    assert p.returncode == (3 if report["outcome"] in ("partial", "rejected") else 0)
    con = duckdb.connect()

    def q(sql):
        table = re.sub(r"@(\w+)", lambda m: f"read_parquet('{lake}/{m[1]}/**/*.parquet')", sql)
        return con.execute(table).fetchall()

    base = q("select coalesce(base_ns, 0) from @traces")[0][0]
    assert q("select outcome from @traces") == [(report["outcome"],)]

    check_nsight(want, q, base, report)
    cats = dict(
        q(
            """select category, count(*) from (
                 select category from @gpu_events union all select category from @launches
                 union all select category from @ranges union all select category from @cpu_events) group by 1"""
        )
    )
    expected = dict(want.get("duration_events_by_cat", cats))
    if report["outcome"] == "partial" and "repaired" in want["outcome"]:
        assert sum(expected.values()) - sum(cats.values()) == report["lost_events"]
    else:
        assert cats == expected

    assert q("select count(*) from @gpu_events")[0][0] == want["gpu_events"]
    status = dict(q("select link_status, count(*) from @gpu_events group by 1"))
    assert [status.get(s, 0) for s in ("linked", "unlinked", "ambiguous")] == [
        want["linked"],
        want["unlinked"],
        want.get("ambiguous", 0),
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
    expected = sorted(want["links"], key=lambda x: x["start_ns"])
    for x in expected:  # the version suffix of a driver's name is no part of it
        x["launch"] = x["launch"] and re.sub(r"_v\d+$", "", x["launch"])
        x.pop("device", None)
    assert [{k: v for k, v in g.items() if k in w} for g, w in zip(got, expected, strict=True)] == expected

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


def check_nsight(want, q, base, report):
    """What only the pages of Nsight Systems exports state."""
    if "kernels" in want:
        assert q("select count(*) from @gpu_events where kind = 'gpu_kernel'")[0][0] == want["kernels"]
    if "nvtx_ranges" in want:
        assert q("select count(*) from @ranges")[0][0] == want["nvtx_ranges"]
        variants = [d["message"] for d in report["diagnostics"] if d["code"] == "table_variant"]
        assert variants == ["NVTX_EVENTS_V3 was read as NVTX_EVENTS"]
    if "kernels_per_range" in want:
        per_range = q(
            """select count(g.event_index) from @ranges r left join @gpu_events g on g.iteration_range = r.event_index
               group by r.event_index order by r.event_index"""
        )
        assert [n for (n,) in per_range] == want["kernels_per_range"]
    if "ranges" in want:
        rows = q(f"select name, start_ns - {base}, end_ns - {base} from @ranges where end_ns is not null")
        assert {name: [start, end] for name, start, end in rows} == want["ranges"]
        open_ranges = q("select name, time_flag from @ranges where end_ns is null")
        assert open_ranges == [(name, "missing_duration") for name in want["open_ranges"]]
        assert [d["count"] for d in report["diagnostics"] if d["code"] == "open_range"] == [len(open_ranges)]
        assert q("select count(*) from @instants where category = 'nvtx_mark'")[0][0] == want["marks"]
    if report["gpu_events"] > want.get("kernels", report["gpu_events"]):
        kinds = dict(q("select kind, count(*) from @gpu_events group by 1"))
        assert kinds == {"gpu_kernel": want["kernels"], "gpu_graph": want["gpu_events"] - want["kernels"]}
        assert [d["count"] for d in report["diagnostics"] if d["code"] == "graph_trace_rows"] == [kinds["gpu_graph"]]


def test_strict_rejects_what_is_not_ok(tracelake, tmp_path):
    p = tracelake("convert", "--strict", "--json", CASES / "05_truncated.json", "-o", tmp_path / "lake", ok=(3,))
    report = json.loads(p.stdout.splitlines()[0])
    assert report["outcome"] == "rejected"
    assert "strict" in report["reason"]
