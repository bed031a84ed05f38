"""Read a trace with the json module of Python; nothing else."""

import argparse
import json

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("trace")
arguments = parser.parse_args()

with open(arguments.trace, encoding="utf-8") as file:
    print(len(json.load(file)["traceEvents"]), "events")
