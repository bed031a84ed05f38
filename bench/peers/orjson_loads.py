"""Read a trace with orjson; nothing else."""

import argparse
import pathlib

import orjson

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("trace")
arguments = parser.parse_args()

print(len(orjson.loads(pathlib.Path(arguments.trace).read_bytes())["traceEvents"]), "events")
