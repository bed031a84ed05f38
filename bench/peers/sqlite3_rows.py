"""Read the columns that tracelake reads with Python's sqlite3, row by row, and keep nothing."""

import argparse
import pathlib
import sqlite3

from nsys_columns import TABLES, query

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("export")
arguments = parser.parse_args()

connection = sqlite3.connect(pathlib.Path(arguments.export).resolve().as_uri() + "?mode=ro", uri=True)
rows = 0
for table in TABLES:
    for _ in connection.execute(query(table)):
        rows += 1
print(rows, "rows")
