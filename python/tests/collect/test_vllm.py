"""vLLM's own profiler on a tiny model: prefill and decode steps from the engine
through the trace and the dataset to the analysis."""

import collections
import json

import jobs
import pytest
from test_tracers import read_trace

RUN = "vllm_profiler/eval"
TOKENS = 8  # each of the prompts, greedy and never ending early

pytestmark = pytest.mark.runs(RUN)


@pytest.fixture
def answer(run_of):
    return run_of(RUN)


def steps(answer):
    return [e["name"] for e in read_trace(answer.trace_file()) if e["cat"] == "user_annotation" and e["name"].startswith("execute_")]


def test_generates(answer):
    details = answer.details
    assert details["task"] == "generate" and details["requests"] == len(jobs.PROMPTS)
    assert details["generated_tokens"] == TOKENS * len(jobs.PROMPTS)
    assert [p["name"] for p in answer.done["phases"]] == ["import", "load_model", "inputs", "warmup", "trace", "export"]
    assert details["traces"] == [details["reported_trace"]]
    assert answer.done.get("leftover_processes", 0) == 0


def test_prefill_and_decode_steps(answer):
    """The first token comes from the prefill, each further one from a decode step."""
    names = steps(answer)
    assert answer.details["prefill_steps"] >= 1
    assert answer.details["decode_steps"] == TOKENS - 1
    assert len(names) == answer.details["prefill_steps"] + answer.details["decode_steps"]
    phases = collections.Counter(r.get("phase") for r in answer.table("ops"))
    assert phases["prefill"] > 0 and phases["decode"] > phases["prefill"]


def test_operators(answer):
    rows = answer.table("ops")
    counted = answer.json("vllm_profile.json")
    in_trace = collections.Counter(e["name"] for e in read_trace(answer.trace_file()) if e["cat"] == "cpu_op")
    assert {k: v["count"] for k, v in counted.items()} == in_trace
    assert answer.details["cpu_ops"] == len(rows) == sum(in_trace.values())
    per_step = collections.Counter(r["step"] for r in rows if r.get("phase") == "decode")
    assert len(per_step) == TOKENS - 1 and len(set(per_step.values())) == 1  # every decode step runs the same
    assert answer.json("vllm_kernel_profile.json") == []


def test_analyze_steps(answer, lake, tracelake):
    out = tracelake("analyze", "steps", lake(RUN), "--format", "json").stdout
    rows = {r["phase"]: r for r in map(json.loads, out.splitlines())}
    assert rows["decode"]["steps"] == answer.details["decode_steps"]
    assert rows["decode"]["requests"] == len(jobs.PROMPTS) and rows["decode"]["tokens"] == len(jobs.PROMPTS)
    assert rows["prefill"]["tokens"] > len(jobs.PROMPTS)
    assert all(r["mean_wall_ms"] > 0 for r in rows.values())


def test_operators_by_step_in_sql(answer, lake, tracelake):
    query = """
        SELECT phase, count(DISTINCT step) AS steps, count(*) AS ops, sum(dur_ns) AS ns
        FROM ops WHERE tracer = 'vllm_profiler' AND phase IS NOT NULL AND parent_index IS NULL GROUP BY 1"""
    rows = {r["phase"]: r for r in map(json.loads, tracelake("sql", lake(RUN), query, "--format", "json").stdout.splitlines())}
    assert rows["decode"]["steps"] == answer.details["decode_steps"]
    assert rows["prefill"]["steps"] == answer.details["prefill_steps"]
    assert all(r["ns"] > 0 for r in rows.values())
