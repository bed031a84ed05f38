"""Read the columns that tracelake reads with DuckDB's SQLite scanner into Arrow.

The scanner is an extension of DuckDB; the package duckdb-extension-sqlite-scanner
carries it for one version of DuckDB.
"""

import argparse
import os
import pathlib

import duckdb
import duckdb_extension_sqlite_scanner
from nsys_columns import TABLES, query

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("export")
arguments = parser.parse_args()

connection = duckdb.connect(config={"threads": int(os.environ.get("THREADS", "1")), "allow_unsigned_extensions": True})
extension = next(pathlib.Path(duckdb_extension_sqlite_scanner.__file__).parent.glob("extensions/*/*.duckdb_extension"))
connection.execute(f"LOAD '{extension}'")
path = arguments.export.replace("'", "''")
connection.execute(f"ATTACH '{path}' AS report (TYPE sqlite, READ_ONLY)")
rows = 0
for table in TABLES:
    rows += connection.execute(query(table).replace("FROM ", "FROM report.")).to_arrow_table().num_rows
print(rows, "rows")
