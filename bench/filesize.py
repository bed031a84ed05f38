"""Size of the Parquet files of a dataset beside what other writers make of them.

    bench/filesize.py LAKE

Reads every table of a dataset made by `tracelake convert`, has pyarrow, DuckDB
and polars write the same rows in the same order with zstd, each with its own
defaults otherwise, and prints the sizes as Markdown. `best` is the smallest of
the others. Needs pyarrow, duckdb and polars: run it with `.venv/bin/python`.
"""

import argparse
import pathlib
import tempfile

import duckdb
import polars
import pyarrow
import pyarrow.parquet


def with_pyarrow(table: pyarrow.Table, out: pathlib.Path):
    pyarrow.parquet.write_table(table, out, compression="zstd")


def with_duckdb(table: pyarrow.Table, out: pathlib.Path):
    db = duckdb.connect()
    db.register("rows", table)
    db.execute("SET preserve_insertion_order = true")
    db.execute(f"COPY rows TO '{out}' (FORMAT parquet, COMPRESSION zstd)")


def with_polars(table: pyarrow.Table, out: pathlib.Path):
    polars.from_arrow(table).write_parquet(out, compression="zstd")


WRITERS = {"pyarrow": with_pyarrow, "DuckDB": with_duckdb, "polars": with_polars}


def sizes(file: pathlib.Path, scratch: pathlib.Path) -> dict[str, int]:
    """Bytes of one file and of its rows as each writer stores them."""
    table = pyarrow.parquet.read_table(file, partitioning=None)
    out = {"tracelake": file.stat().st_size}
    for name, write in WRITERS.items():
        copy = scratch / f"{name}.parquet"
        write(table, copy)
        if pyarrow.parquet.read_metadata(copy).num_rows != table.num_rows:
            raise SystemExit(f"{file}: {name} wrote another number of rows")
        out[name] = copy.stat().st_size
    return out


def totals(lake: pathlib.Path, scratch: pathlib.Path) -> dict[str, dict[str, int]]:
    """Bytes by table and writer."""
    out: dict[str, dict[str, int]] = {}
    for file in sorted(lake.glob("[!_]*/**/*.parquet")):
        row = out.setdefault(file.relative_to(lake).parts[0], dict.fromkeys(["tracelake", *WRITERS], 0))
        for name, size in sizes(file, scratch).items():
            row[name] += size
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lake", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = totals(args.lake, pathlib.Path(scratch))
    names = ["tracelake", *WRITERS]
    rows["all tables"] = {n: sum(t[n] for t in rows.values()) for n in names}
    print("| table | " + " | ".join(f"{n}, bytes" for n in names) + " | tracelake over best |")
    print("|---|" + "---|" * (len(names) + 1))
    for table, row in rows.items():
        best = min(size for name, size in row.items() if name != "tracelake")
        print(f"| {table} | " + " | ".join(str(size) for size in row.values()) + f" | {row['tracelake'] / best:.2f} |")


if __name__ == "__main__":
    main()
