"""Load a trace with HolisticTraceAnalysis and answer one question about it.

Prints the CPU time of the answer alone, without the loading.
"""

import logging
import sys
import time
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

from hta.trace_analysis import TraceAnalysis  # noqa: E402

QUESTIONS = {
    "devices": lambda h: h.get_temporal_breakdown(visualize=False),
    "idle": lambda h: h.get_idle_time_breakdown(ranks=[0], consecutive_kernel_delay=30, visualize=False),
    "kernels": lambda h: h.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True),
    "overlap": lambda h: h.get_comm_comp_overlap(visualize=False),
    "launches": lambda h: h.get_cuda_kernel_launch_stats(ranks=[0], visualize=False),
    "queue": lambda h: h.get_queue_length_summary(ranks=[0]),
    "ops": lambda h: h.get_aten_op_kernels_and_delay(ranks=[0]),
}

if __name__ == "__main__":
    trace, question = sys.argv[1:]
    hta = TraceAnalysis(trace_files={0: trace}, include_last_profiler_step=True)
    start = time.process_time()
    QUESTIONS[question](hta)
    print(f"{time.process_time() - start:.3f}")
