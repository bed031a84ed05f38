"""Read a trace with DuckDB's JSON reader and a declared schema; write Parquet.

Arguments without a column are lost, and times are doubles: less than an import
has to do, which is what makes it a fair lower bound.
"""

import argparse

import duckdb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("trace")
parser.add_argument("output")
arguments = parser.parse_args()

ARGS = {
    "External id": "BIGINT",
    "correlation": "BIGINT",
    "cbid": "BIGINT",
    "device": "BIGINT",
    "context": "BIGINT",
    "stream": "BIGINT",
    "registers per thread": "BIGINT",
    "shared memory": "BIGINT",
    "grid": "BIGINT[]",
    "block": "BIGINT[]",
    "graph id": "BIGINT",
    "graph node id": "BIGINT",
    "bytes": "BIGINT",
    "Input Dims": "JSON",
    "Input type": "JSON",
    "Python id": "BIGINT",
    "Python parent id": "BIGINT",
    "Ev Idx": "BIGINT",
}
EVENT = {"ph": "VARCHAR", "cat": "VARCHAR", "name": "VARCHAR", "pid": "VARCHAR", "tid": "VARCHAR"}
EVENT |= {"ts": "DOUBLE", "dur": "DOUBLE", "id": "BIGINT"}


def struct(fields):
    return ", ".join(f'"{name}" {kind}' for name, kind in fields.items())


connection = duckdb.connect()
connection.execute("SET preserve_insertion_order = false")
connection.execute(
    f"""
    COPY (
      SELECT unnest(e, recursive := true) FROM (
        SELECT unnest(traceEvents) AS e
        FROM read_json(
          $source, format = 'unstructured', maximum_object_size = 4294967295,
          columns = {{'traceEvents': 'STRUCT({struct(EVENT)}, args STRUCT({struct(ARGS)}))[]'}}
        )
      )
    ) TO '{arguments.output.replace("'", "''")}' (FORMAT parquet)
    """,
    {"source": arguments.trace},
)
rows = connection.execute("SELECT count(*) FROM read_parquet(?)", [arguments.output]).fetchall()
print(rows[0][0], "rows")
