# ruff: noqa: E501 (rows of results)
"""Every analysis over traces small enough to be worked out by hand.

testdata/analyses has them, with one event per line; times there are in µs, and
so are those of the comments here. Devices, idle, launches and kernels follow
from the same list of GPU work in one.json:

    gemm 30-50 | set 50-54 | copy 70-80 (stream 20) | mul 108-110
    graph replay 1: gemm 135-145, mul 150-152, gemm 152-162
    graph replay 2: gemm 163-168, mul 170-172, gemm 172-176
    gemm 190-195, whose launch is missing | broken, of length -3
"""

import pytest
from conftest import ROOT

FOLDER = ROOT / "testdata" / "analyses"
ONE, RANKS, SERVING = "one.json", "ranks", "serving.json"

GOLDEN = {}


def golden(name, source, text):
    GOLDEN[source, name] = text.strip().replace("\n    ", "\n") + "\n"


# GPU time: 20 + 4 + 10 + 2 + (10 + 2 + 10) + (5 + 2 + 4) + 5 = 74 of 200 µs, none at
# the same time. 11 of 12 GPU events have a launch. Six operators and frames.
golden(
    "summary",
    ONE,
    """
    run,rank,trace_id,path,outcome,wall_ms,gpu_events,kernels,linked_pct,gpu_ms,busy_pct,iterations,ranges,cpu_events,top_kernel
    analyses,,one,one.json,ok,0.2,12,9,91.67,0.074,37,2,2,6,gemm
    """,
)
# 2 of 12 events are concerned, more than a tenth.
golden(
    "trust",
    ONE,
    """
    run,rank,trace_id,verdict,affects,outcome,gpu_events,linked_pct,ambiguous,excluded,overruns,graph_events,idle_launches,launching_calls,lost_events,missing_ranks
    analyses,,one,poor,"1 unlinked GPU events: launches, ops, python and iterations miss their time; 1 GPU events without usable times: left out of all times",ok,12,91.67,0,1,0,0,0,5,0,0
    """,
)
# From 30 to 195; busy 74 of 165, of which 14 are copies and sets.
golden(
    "devices",
    ONE,
    """
    run,rank,trace_id,process,device,gpu,gpu_events,excluded,window_ns,busy_ns,idle_ns,busy_pct,compute_ns,communication_ns,memory_ns,exposed_communication_ns,exposed_memory_ns,overlap
    analyses,,one,,0,,11,1,165000,74000,91000,44.85,60000,0,14000,0,14000,1
    """,
)
# Device: 54-70, 80-108 and 110-135 end with work launched in them (host);
# 145-150 and 168-170 lie in a replay; 162-163 and 176-190 are short.
# Stream 7 is idle 54-108 instead of the first two; stream 20 has one event.
golden(
    "idle",
    ONE,
    """
    run,rank,trace_id,process,device,stream,reason,gaps,idle_ns,share_pct,mean_us,max_us
    analyses,,one,,0,,host,3,69000,75.82,23,28
    analyses,,one,,0,,short,2,15000,16.48,7.5,14
    analyses,,one,,0,,graph,2,7000,7.69,3.5,5
    analyses,,one,,0,7,host,2,79000,78.22,39.5,54
    analyses,,one,,0,7,short,2,15000,14.85,7.5,14
    analyses,,one,,0,7,graph,2,7000,6.93,3.5,5
    """,
)
# gemm: 20 10 10 5 4 5, sum 54, squares of the distances to 9: 180 over 5, root 6;
# p95 lies at 4.75 of 0 to 5: 10 + 0.75 * 10.
golden(
    "kernels",
    ONE,
    """
    name,class,events,total_ns,total_ms,mean_us,min_us,p50_us,p95_us,max_us,stddev_us,share_pct
    gemm,compute,6,54000,0.054,9,4,7.5,17.5,20,6,90
    mul,compute,3,6000,0.006,2,2,2,2,2,0,10
    """,
)
# On stream 7 in order: g m g m g g m g g. g m g: 30-145, 135-162, 163-176, of which
# 32, 22 and 11 are kernels; m g g: 150-168 and 170-195, of which 17 and 11 are.
golden(
    "kernel-sequences",
    ONE,
    """
    sequence,count,kernel_ms,wall_ms,gap_us
    gemm → mul → gemm,3,0.065,0.155,30
    mul → gemm → gemm,2,0.028,0.043,7.5
    """,
)
# 20000 bytes in 10 µs; 4096 in 4.
golden(
    "copies",
    ONE,
    """
    run,rank,trace_id,process,device,kind,copy_kind,from,to,events,bytes,total_us,mean_us,max_us,gb_per_s
    analyses,,one,,0,gpu_memcpy,HtoD,Pageable,Device,1,20000,10,10,10,2
    analyses,,one,,0,gpu_memset,,,Device,1,4096,4,4,4,1.024
    """,
)
# Replays of 135-162 with 22 busy and 163-176 with 11; calls of 10 and 4.
golden(
    "graphs",
    ONE,
    """
    run,rank,trace_id,process,device,graph_id,launch_api,replays,events,wall_us,busy_us,gaps_us,min_wall_us,max_wall_us,launch_us
    analyses,,one,,0,9,cudaGraphLaunch,2,3,20,16.5,3.5,13,27,7
    """,
)
# Graph launches: calls of 10 and 4 (p95 at 0.95 between them), work 15 and 32 after
# their start, 5 and 28 after their end. cudaLaunchKernel: calls of 5, 4 and 2, the
# last one's work is broken; work 10 and 1 after the start, 5 and -3 after the end.
golden(
    "launches",
    ONE,
    """
    api,calls,total_ms,mean_us,p95_us,max_us,launching,gpu_events,mean_delay_us,p95_delay_us,mean_queue_us,mean_wait_us,shorter_than_call,shorter_pct
    cudaDeviceSynchronize,1,0.02,20,20,20,0,0,,,,,0,
    cudaStreamSynchronize,1,0.015,15,15,15,0,0,,,,,0,
    cudaGraphLaunch,2,0.014,7,9.7,10,2,6,23.5,31.15,16.5,16.5,0,0
    cudaLaunchKernel,3,0.011,3.667,4.9,5,2,2,5.5,9.55,1,2.5,1,50
    cudaMemcpyAsync,1,0.004,4,4,4,1,1,8,8,4,4,0,0
    cudaMemsetAsync,1,0.003,3,3,3,1,1,8,8,5,5,0,0
    """,
)
# Stream 7 waits 20-30, 42-50, 107-108, 120-135 and 131-163: 66 in 143, two at a time
# from 131 to 135; none waits in 143 - (10 + 8 + 1 + 43) = 81. Stream 20: 62-70.
golden(
    "queue",
    ONE,
    """
    run,rank,trace_id,process,device,stream,launches,early,max,mean,empty_pct,full_ns
    analyses,,one,,0,7,5,0,2,0.462,56.64,0
    analyses,,one,,0,20,1,0,1,1,0,0
    """,
)
# 5 of 74 µs.
golden(
    "unlinked",
    ONE,
    """
    run,rank,trace_id,kind,link_status,unresolved_reason,gpu_events,total_ms,share_pct
    analyses,,one,gpu_kernel,unlinked,no_launch_record,1,0.005,6.76
    """,
)
# addmm 15-40 lies in linear 10-50, and launches 20 of its 24; copy_ 60-90, mul
# 105-115. Their own GPU time is 36 in all.
golden(
    "ops",
    ONE,
    """
    name,shape,module,calls,cpu_total_ms,cpu_self_ms,gpu_total_ms,gpu_self_ms,gpu_events,gpu_share_pct
    aten::addmm,,,1,0.025,0.025,0.02,0.02,1,55.56
    aten::copy_,,,1,0.03,0.03,0.01,0.01,1,27.78
    aten::linear,,,1,0.04,0.015,0.024,0.004,1,11.11
    aten::mul,,,1,0.01,0.01,0.002,0.002,1,5.56
    """,
)
# forward 5-65 launches 20 + 4 + 10; main 0-200 these and 2 + 22 + 11.
golden(
    "python",
    ONE,
    """
    frame,calls,gpu_total_ms,gpu_self_ms,cpu_total_ms,cpu_self_ms
    train.py(1): main,1,0.069,0.035,0.2,0.14
    model.py(5): forward,1,0.034,0.034,0.06,0.06
    """,
)
# The stream is waited for in copy_, the device outside of operators.
golden(
    "sync",
    ONE,
    """
    run,rank,trace_id,api,op,calls,blocked_ms,mean_us,max_us,share_pct
    analyses,,one,cudaDeviceSynchronize,,1,0.02,20,20,10
    analyses,,one,cudaStreamSynchronize,aten::copy_,1,0.015,15,15,7.5
    """,
)
# 1024 at 20, 2048 more at 40, 1024 less at 60.
golden(
    "memory",
    ONE,
    """
    run,rank,trace_id,device,device_type,allocations,frees,allocated_bytes,peak_allocated_bytes,peak_at_ms,peak_reserved_bytes,end_allocated_bytes
    analyses,,one,0,1,2,1,3072,3072,0.04,4096,2048
    """,
)
# Step 0 launches 20 + 4 + 10 between 30 and 80; step 1 2 + 22 + 11 between 108 and 176.
golden(
    "iterations",
    ONE,
    """
    run,rank,trace_id,producer,iteration,start_ms,wall_ms,gpu_events,launches,gpu_busy_ms,gpu_span_ms,gpu_summed_ms,slowdown,context_requests,context_tokens,generation_requests,generation_tokens
    analyses,,one,ProfilerStep,0,0,0.1,3,4,0.034,0.05,0.034,1,,,,
    analyses,,one,ProfilerStep,1,0.1,0.1,7,5,0.035,0.068,0.035,1,,,,
    """,
)
# No collective.
golden("overlap", ONE, "run,rank,trace_id,process,device,communication_ns,hidden_ns,exposed_ns,hidden_pct")
# Ranks arrive at 30 and 50 and end at 60; then at 140 and 130 and end at 160. Means on
# a rank: 20 and 25; waits 20 and 10; transfers 10 and 20, of 4000 bytes each.
golden(
    "collectives",
    RANKS,
    """
    run,collective,group,group_size,ranks,bytes,count,mean_us,wait_us,transfer_us,alg_gb_per_s,bus_gb_per_s,matched_by
    ranks,allreduce,0,2,2,4000,2,22.5,15,15,0.267,0.267,order
    """,
)
# Step 3: rank 1 computes 40 (median 30) and communicates 10 (median 20). Step 4: rank 0
# computes 30, as rank 1 does (of which 10 in its collective), and communicates 20
# (median 25). All are busy for 50 of 100.
golden(
    "stragglers",
    RANKS,
    """
    run,producer,iteration,nth_trace,ranks,straggler,wall_ms,median_wall_ms,extra_compute_ms,less_communication_ms,extra_gap_ms,does_instead
    ranks,ProfilerStep,3,1,2,1,0.1,0.1,0.01,0.01,0,gemm
    ranks,ProfilerStep,4,1,2,0,0.1,0.1,0,0.005,0,gemm
    """,
)
# Rank 1 computes 135-145 in its collective of 130-160.
golden(
    "overlap",
    RANKS,
    """
    run,rank,trace_id,process,device,communication_ns,hidden_ns,exposed_ns,hidden_pct
    ranks,0,rank0,,0,50000,0,50000,0
    ranks,1,rank1,,0,40000,10000,30000,25
    """,
)
# SGLang's mark lies in vLLM's: one step. Decode steps of 40 and 60 are busy 120-140
# (two streams) and 160-170; 30 µs for 8 tokens. The mixed one launches nothing.
golden(
    "steps",
    SERVING,
    """
    run,rank,trace_id,phase,requests,steps,tokens,mean_wall_ms,p95_wall_ms,mean_gpu_ms,gpu_us_per_token
    analyses,,serving,decode,4,2,4,0.05,0.059,0.015,3.75
    analyses,,serving,mixed,4,1,67,0.05,0.05,0,0
    analyses,,serving,prefill,2,1,128,0.1,0.1,0.05,0.391
    """,
)


@pytest.fixture(scope="module")
def lakes(tracelake, tmp_path_factory):
    root = tmp_path_factory.mktemp("golden")
    out = {}
    for source in (ONE, RANKS, SERVING):
        out[source] = root / source.removesuffix(".json")
        tracelake("convert", FOLDER / source, "-o", out[source], "-q")
    return out


@pytest.mark.parametrize(("source", "name"), list(GOLDEN))
def test_golden(source, name, lakes, tracelake):
    out = tracelake("analyze", name, lakes[source], "--format", "csv").stdout
    for row in tracelake("sql", lakes[source], "select trace_id, path from traces", "--format", "csv").stdout.splitlines()[1:]:
        trace, path = row.split(",")
        file = path.rpartition("/")[2]
        out = out.replace(trace, file.removesuffix(".json")).replace(path, file)
    assert out == GOLDEN[source, name]


def test_every_analysis_has_one():
    """Here, or in a test of its own that names it."""
    tests = [p for d in ("analyze", "cmd", "convert") for p in (ROOT / d).rglob("*_test.go")]
    tests += (ROOT / "python" / "tests").glob("test_*.py")
    texts = [p.read_text() for p in tests if p != ROOT / "python" / "tests" / "test_golden.py"]
    for file in (ROOT / "analyze" / "query" / "sql").glob("*.sql"):
        here = any(name == file.stem for _, name in GOLDEN)
        assert here or any(f'"{file.stem}"' in text for text in texts), f"{file.stem} has no golden test"
