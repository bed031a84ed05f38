"""Every real trace, read back by DuckDB, pandas, polars and pyarrow."""

import duckdb
import pandas as pd
import plain
import polars as pl
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

TABLES = ["gpu_events", "launches", "ranges", "cpu_events", "flows", "instants", "metadata"]
TIMED = ["gpu_events", "launches", "ranges", "cpu_events"]


@pytest.fixture(scope="module")
def lake(tracelake, shared, tmp_path_factory):
    out = tmp_path_factory.mktemp("readback") / "lake"
    tracelake("convert", "-q", shared / "traces" / "kineto", shared / "traces" / "own", "-o", out, "--run", "all", ok=(0, 3))
    return out


@pytest.fixture(scope="module")
def con(lake):
    con = duckdb.connect()
    for t in [*TABLES, "traces", "devices", "activities", "diagnostics"]:
        con.execute(f"create view {t} as select * from read_parquet('{lake}/{t}/**/*.parquet', hive_partitioning=true)")
    return con


@pytest.fixture(scope="module")
def traces(con):
    rows = con.execute("select path, trace_id from traces where outcome <> 'rejected' order by path").fetchall()
    assert len(rows) > 100
    return rows


def per_trace(con, sql):
    return {r[0]: r[1:] for r in con.execute(sql).fetchall()}


def test_counts_sums_and_joins(con, traces):
    """Row counts, sums of times and three joins agree with plain Python."""
    count = {t: per_trace(con, f"select trace_id, count(*) from {t} group by 1") for t in TABLES}
    sums = {t: per_trace(con, f"select trace_id, sum(dur_ns)::hugeint, sum(start_ns)::hugeint from {t} group by 1") for t in TIMED}
    links = per_trace(
        con,
        """select g.trace_id, count(*), sum(g.start_ns - l.start_ns)::hugeint
           from gpu_events g join launches l on l.trace_id = g.trace_id and l.event_index = g.launch_id
           where g.link_method = 'correlation' group by 1""",
    )
    ops = per_trace(
        con,
        """select g.trace_id, count(*) from gpu_events g join cpu_events c using (trace_id, external_id) group by 1""",
    )
    frames = per_trace(
        con,
        """select a.trace_id, count(*) from cpu_events a join cpu_events b
           on a.trace_id = b.trace_id and a.python_parent_id = b.python_id group by 1""",
    )
    wrong = []
    for path, tid in traces:
        f = plain.Facts(plain.Path(path))
        got = {t: count[t].get(tid, (0,))[0] for t in TABLES}
        want = {t: f.rows[t] for t in TABLES}
        for name, a, b in [
            ("rows", got, want),
            ("dur", {t: int(sums[t].get(tid, (0, 0))[0] or 0) for t in TIMED}, {t: f.dur[t] for t in TIMED}),
            ("start", {t: int(sums[t].get(tid, (0, 0))[1] or 0) for t in TIMED}, {t: f.start[t] for t in TIMED}),
            ("links", tuple(int(x or 0) for x in links.get(tid, (0, 0))), (f.linked, f.delay)),
            ("ops", ops.get(tid, (0,))[0], f.with_op),
            ("frames", frames.get(tid, (0,))[0], f.frames),
        ]:
            if a != b:
                wrong.append((path, name, a, b))
    assert not wrong, wrong[:5]


def test_all_readers_agree(con, lake):
    """pandas, polars and pyarrow see the rows and sums that DuckDB sees."""
    for t in TIMED:
        n, dur, ids = con.execute(f"select count(*), sum(dur_ns)::hugeint, count(distinct trace_id) from {t}").fetchone()
        files = sorted((lake / t).glob("**/*.parquet"))
        assert files
        frame = pd.read_parquet(lake / t, columns=["dur_ns", "trace_id"], dtype_backend="pyarrow")
        assert (len(frame), int(frame["dur_ns"].sum()), frame["trace_id"].nunique()) == (n, int(dur), ids)
        p = pl.scan_parquet(lake / t / "**/*.parquet").select(pl.len(), pl.col("dur_ns").sum(), pl.col("trace_id").n_unique())
        assert p.collect().row(0) == (n, int(dur), ids)
        a = ds.dataset(lake / t, format="parquet", partitioning="hive").to_table(columns=["dur_ns", "trace_id"])
        assert (a.num_rows, pc.sum(a["dur_ns"]).as_py(), pc.count_distinct(a["trace_id"]).as_py()) == (n, int(dur), ids)


def test_counts_in_traces(con):
    """What traces says about each trace is what the tables hold."""
    bad = con.execute(
        """select path, t.gpu_events, g.n, t.linked_gpu_events, g.linked
           from traces t join (select trace_id, count(*) n, count(launch_id) linked from gpu_events group by 1) g using (trace_id)
           where t.gpu_events <> g.n or t.linked_gpu_events <> g.linked"""
    ).fetchall()
    assert not bad


def test_activities_cover_all_gpu_work(con):
    """Activities hold every GPU event once, and the union of each device."""
    a = per_trace(con, "select trace_id, sum(event_count)::bigint, sum(summed_ns)::hugeint from activities group by 1")
    g = per_trace(
        con,
        """select trace_id, count(*), sum(dur_ns) filter (where time_flag is null or time_flag = 'overruns_next')::hugeint
           from gpu_events group by 1""",
    )
    assert {k: (v[0], int(v[1] or 0)) for k, v in a.items()} == {k: (v[0], int(v[1] or 0)) for k, v in g.items()}
    # Busy time by a sweep over the raw events.
    swept = con.execute(
        """with e as (select trace_id, device, start_ns, end_ns,
                        max(end_ns) over (partition by trace_id, device order by start_ns, end_ns
                                          rows between unbounded preceding and 1 preceding) as before
                      from gpu_events where time_flag is null or time_flag = 'overruns_next')
           select trace_id, device, sum(greatest(0, end_ns - greatest(start_ns, coalesce(before, start_ns))))::hugeint
           from e group by all"""
    ).fetchall()
    busy = {(t, d): int(b) for t, d, b in con.execute("select trace_id, ordinal, busy_ns from devices where gpu_events > 0").fetchall()}
    assert {(t, d): int(b) for t, d, b in swept} == busy
