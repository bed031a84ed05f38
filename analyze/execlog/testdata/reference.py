"""Binds traces with the stormlog package: one JSON request per line of standard input."""

import json
import sys

from stormlog.infer.trace_kineto import load_kineto_trace
from stormlog.infer.vllm_execution_devices import WorkerIndex

for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = WorkerIndex.from_directory(request["log"]).bind_trace(load_kineto_trace(request["trace"])).summary()
    except Exception as e:
        answer = {"error": f"{type(e).__name__}: {e}"}
    print(json.dumps(answer, sort_keys=True), flush=True)
