"""What other engines and table formats make of a dataset."""

import json
import re

import duckdb
import pyarrow.compute
import pyarrow.parquet
import pytest
import spark_cluster as spark
from lakes import ROOT, tables

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


@pytest.fixture(scope="module")
def lake(tracelake, tmp_path_factory):
    lake = tmp_path_factory.mktemp("tables") / "lake"
    tracelake("convert", "-q", ROOT / "testdata" / "demo", "-o", lake, "--run", "all")
    return lake


def figures(columns, one, characters="length", items="length"):
    """SQL that every engine understands: rows, and of each column how many values and a sum or lengths."""
    out = ["count(*)"]
    for name, kind in columns:
        # Not every engine tells an empty list from none.
        out.append(f"coalesce(sum({items}({name})), 0)" if kind.endswith("[]") else f"count({name})")
        if kind in INTEGERS:
            out.append(f"CAST(sum(CAST({name} AS DECIMAL(38, 0))) AS {one})")
        elif kind in ("DOUBLE", "FLOAT"):
            out.append(f"sum({name})")
        elif kind == "VARCHAR":
            out.append(f"sum({characters}({name}))")
    return ", ".join(out)


def columns(con, lake, table):
    con.sql(
        f"CREATE OR REPLACE VIEW t AS SELECT * FROM read_parquet('{lake}/{table}/**/*.parquet',"
        f" hive_partitioning = {str(table != 'traces').lower()}, union_by_name = true)"
    )
    return [(f"{c[0]}", c[1]) for c in con.sql("DESCRIBE t").fetchall()]


def by_duckdb(lake):
    con = duckdb.connect()
    out = {}
    for table in tables(lake):
        cols = [(f'"{n}"', k) for n, k in columns(con, lake, table)]
        out[table] = list(con.sql(f"SELECT {figures(cols, 'VARCHAR')} FROM t").fetchall()[0])
    return out


@pytest.fixture(scope="module")
def session():
    if not spark.java():
        pytest.skip("SKIPPED: no java, which Spark needs; install a JRE of version 17 or newer to run this test")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in spark.environment(spark.HOSTS[0]).items():
            monkeypatch.setenv(name, value)
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.driver.memory", "600m")
            .getOrCreate()
        )
        yield session
        session.stop()


def agree(found, want):
    assert set(found) == set(want) and sum(w[0] for w in want.values()) > 1000
    for table, row in want.items():
        assert found[table] == pytest.approx(row), table


def test_spark(lake, session):
    """Spark reads every table with the rows and sums that DuckDB finds."""
    con, found = duckdb.connect(), {}
    for table in tables(lake):
        cols = [(f"`{n}`", k) for n, k in columns(con, lake, table)]
        session.read.parquet(f"{lake}/{table}").createOrReplaceTempView("t")
        found[table] = list(session.sql(f"SELECT {figures(cols, 'STRING', items='size')} FROM t").first())
    agree(found, by_duckdb(lake))


def test_clickhouse(lake):
    """So does ClickHouse."""
    import chdb

    con, found = duckdb.connect(), {}
    for table in tables(lake):
        cols = [(f"`{n}`", k) for n, k in columns(con, lake, table)]
        query = f"SELECT {figures(cols, 'String', characters='lengthUTF8')} FROM file('{lake}/{table}/**/*.parquet', Parquet)"
        # Null stays null, and the sum of nothing is null, as in other engines.
        query += " SETTINGS cast_keep_nullable = 1, aggregate_functions_null_for_empty = 1, output_format_json_quote_64bit_integers = 0"
        found[table] = json.loads(str(chdb.query(query, "JSONCompact")))["data"][0]
    agree(found, by_duckdb(lake))


def test_recipes_agree(lake, session):
    """The GPU time of each rank, as docs/cluster.md asks for it in each engine."""
    names = ("duckdb", "spark", "clickhouse", "pandas", "polars")
    found = {name: sorted(map(tuple, recipe(name, LAKE=str(lake), spark=session)["rows"])) for name in names}
    assert len(found["duckdb"]) > 1 and all(n > 100 and total > 10**5 for _, _, n, total in found["duckdb"])
    for name in names:
        assert found[name] == found["duckdb"], name


def recipe(name, **names):
    """Runs a block of docs/cluster.md and returns what it defines."""
    (code,) = re.findall(rf"```python {name}\n(.*?)```", (ROOT / "docs" / "cluster.md").read_text(), re.S)
    exec(code, names)
    return names


def sums(tables):
    """Rows of each table and the sum of a column that most of them have."""

    def sum_of(t):
        return pyarrow.compute.sum(t.column("event_index")).as_py() if "event_index" in t.schema.names else None

    return {name: (t.num_rows, sum_of(t)) for name, t in tables}


def by_arrow(lake):
    return sums((t, pyarrow.parquet.read_table(lake / t, partitioning=None)) for t in tables(lake))


def by_iceberg(lake, warehouse):
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lakes", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=f"file://{warehouse}")
    return sums((name[1], catalog.load_table(name).scan().to_arrow()) for name in catalog.list_tables("tracelake"))


def by_delta(lake, warehouse):
    import deltalake

    found = {t: deltalake.DeltaTable(str(lake / t)).to_pyarrow_table() for t in tables(lake)}
    assert {0, 1} <= set(found["gpu_events"].column("rank").to_pylist())
    return sums(found.items())


@pytest.mark.parametrize(("format", "read"), [("iceberg", by_iceberg), ("delta", by_delta)])
def test_recipe(tracelake, tmp_path, format, read):
    """A registered dataset reads as its files do, also registered again after more was converted and compacted."""
    lake, warehouse = tmp_path / "lake", tmp_path / "warehouse"
    for folder in ("serving", "training-nsight"):
        tracelake("convert", "-q", ROOT / "testdata" / "demo" / folder, "-o", lake, "--run", "all")
        tracelake("compact", lake)
        want = by_arrow(lake)
        assert want["gpu_events"][0] > 100
        recipe(format, LAKE=str(lake), WAREHOUSE=str(warehouse))
        assert read(lake, warehouse) == want
        rows = tracelake("sql", lake, "SELECT count(*) AS n FROM gpu_events", "--format", "json").stdout
        assert json.loads(rows)["n"] == want["gpu_events"][0], "tracelake reads a registered dataset as before"
