"""Load and capture a trace with stormlog, the way its import does."""

import argparse

from stormlog.infer.trace_kineto import capture_trace, load_kineto_trace

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("trace")
arguments = parser.parse_args()

trace = load_kineto_trace(arguments.trace)
capture = capture_trace(trace, arguments.trace, run_id="bench", session_id="bench")
print(len(trace.gpu_events), "GPU events,", len(capture.events), "activities")
