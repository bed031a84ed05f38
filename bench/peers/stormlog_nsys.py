"""Load and capture an Nsight Systems export with stormlog, the way its import does.

With --records the records are written as JSON lines, too, as its import does.
"""

import argparse
import json
import os

from stormlog.infer.trace_kineto import capture_trace
from stormlog.infer.trace_nsys import load_nsys_sqlite

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("export")
parser.add_argument("--records", action="store_true")
arguments = parser.parse_args()

trace = load_nsys_sqlite(arguments.export)
capture = capture_trace(trace, arguments.export, run_id="bench", session_id="bench")
if arguments.records:
    with open(os.devnull, "w", encoding="utf-8") as out:
        for event in capture.events:
            out.write(json.dumps(event.to_record(), sort_keys=True) + "\n")
print(len(trace.gpu_events), "GPU events,", len(capture.events), "activities")
