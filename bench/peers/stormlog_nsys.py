"""Load and capture an Nsight Systems export with stormlog, the way its import does."""

import argparse

from stormlog.infer.trace_kineto import capture_trace
from stormlog.infer.trace_nsys import load_nsys_sqlite

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("export")
arguments = parser.parse_args()

trace = load_nsys_sqlite(arguments.export)
capture = capture_trace(trace, arguments.export, run_id="bench", session_id="bench")
print(len(trace.gpu_events), "GPU events,", len(capture.events), "activities")
