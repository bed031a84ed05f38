"""Asks HolisticTraceAnalysis about traces; runs in an interpreter that has it.

A path per line on stdin, a JSON object per path on stdout: figures by
analysis, or the error that the package ended with. Times are µs, as it gives
them.
"""

import contextlib
import json
import logging
import sys
import time
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

from hta.trace_analysis import TraceAnalysis  # noqa: E402


def rows(frame):
    return json.loads(frame.reset_index().to_json(orient="records"))


def temporal(hta):
    (row,) = rows(hta.get_temporal_breakdown(visualize=False))
    return {k.removesuffix("(us)"): row[k] for k in ("idle_time(us)", "compute_time(us)", "kernel_time(us)")}


def idle(hta):
    # The threshold is documented in ns but compared with µs.
    frame = hta.get_idle_time_breakdown(ranks=[0], consecutive_kernel_delay=30, visualize=False)[0]
    return [[r["stream"], r["idle_category"], r["idle_time"]] for r in rows(frame)]


def kernels(hta):
    types, names = hta.get_gpu_kernel_breakdown(visualize=False, num_kernels=1_000_000, include_memory_kernels=True)
    return {
        "types": {r["kernel_type"]: r["sum"] for r in rows(types)},
        "names": [
            [r["name"], r["kernel_type"], r["sum (us)"], r["min (us)"], r["max (us)"], r["mean (us)"], r["stddev"]] for r in rows(names)
        ],
    }


def overlap(hta):
    (row,) = rows(hta.get_comm_comp_overlap(visualize=False))
    return row["comp_comm_overlap_pctg"]


def launches(hta):
    frame = hta.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0]
    return {
        "rows": len(frame),
        "cpu": int(frame["cpu_duration"].sum()),
        "gpu": int(frame["gpu_duration"].sum()),
        "delay": int(frame["launch_delay"].sum()),
        "shorter": int((frame["gpu_duration"] < frame["cpu_duration"]).sum()),
    }


def queue(hta):
    series = hta.get_queue_length_time_series(ranks=[0])
    if 0 not in series:
        return []
    out = []
    for stream, frame in series[0].groupby("stream"):
        out.append([int(stream), len(frame), int(frame["queue_length"].max()), int(frame["queue_length"].min())])
    return out


ANALYSES = (temporal, idle, kernels, overlap, launches, queue)


def ask(path):
    out = {"cpu_s": {}}
    start = time.process_time()
    hta = TraceAnalysis(trace_files={0: path})
    out["cpu_s"]["load"] = time.process_time() - start
    frame = hta.t.get_trace(0)
    names = hta.t.symbol_table.get_sym_table()
    out["rows"] = {names[c]: int(n) for c, n in frame["cat"].value_counts().items()}
    out["gpu_rows"] = int(frame["stream"].ne(-1).sum()) if "stream" in frame.columns else 0
    for analysis in ANALYSES:
        start = time.process_time()
        try:
            out[analysis.__name__] = analysis(hta)
        except Exception as e:  # whatever it ends with is its answer
            out[analysis.__name__] = {"error": f"{type(e).__name__}: {e}"[:200]}
        out["cpu_s"][analysis.__name__] = time.process_time() - start
    return out


def main():
    for line in sys.stdin:
        path = line.rstrip("\n")
        with contextlib.redirect_stdout(sys.stderr):
            try:
                answer = ask(path)
            except Exception as e:
                answer = {"error": f"{type(e).__name__}: {e}"[:200]}
        answer["path"] = path
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
