"""From tracelake collect --convert to questions over the dataset: a real run of
every tracer, asked through the binary."""

import collections
import json

import jobs
import pytest
from harness import HERE
from test_tracers import LAYERS, averaged

PROFILED = [n for n in jobs.COLLECTED if n.startswith(("torch_profiler", "averages", "torch_inductor", "execution_trace", "vllm"))]
TABLES = {
    "ops": ("torch_profiler", "torch_dispatch", "execution_trace", "meta_ops", "averages", "vllm_profiler"),
    "graph_nodes": ("torch_dynamo", "print_fx", "print_aten_ops", "torch_inductor", "torch_export", "meta_ops", "breaks"),
    "graph_breaks": ("breaks",),
    "guards": ("torch_dynamo", "breaks"),
    "fusions": ("torch_inductor",),
    "kernels_generated": ("torch_inductor",),
}
PRODUCTS = 7 * LAYERS + 1  # weight matrices that a forward pass multiplies with


@pytest.fixture
def ask(tracelake, lake):
    """ask(jobs, query): rows as objects, once those jobs are in the dataset."""

    def run(names, *command):
        directory = lake(*names)
        before, after = (["sql"], [command[0]]) if len(command) == 1 else (list(command), [])
        out = tracelake(*before, directory, *after, "--format", "json").stdout
        return [json.loads(line) for line in out.splitlines()]

    return run


@pytest.mark.runs(*jobs.COLLECTED)
def test_every_job_is_in_the_dataset(ask, run_of):
    traces = ask(jobs.COLLECTED, "SELECT tracer, mode, source, model, framework, outcome, job_key, cpu_events FROM traces")
    assert {t["outcome"] for t in traces} == {"ok"}
    found = {(f"{t['tracer']}/{t['mode']}", t["source"]) for t in traces}
    assert found == {(n, "tables") for n in jobs.COLLECTED} | {(n, "kineto") for n in PROFILED}
    assert len(found) == len(traces)
    for t in traces:
        status = run_of(f"{t['tracer']}/{t['mode']}").done
        assert t["job_key"] == status["key"]
        assert t["model"] == "llama" and t["framework"] == ("vllm" if t["tracer"].startswith("vllm") else "huggingface")
        assert (t["cpu_events"] > 50) == (t["source"] == "kineto")


@pytest.mark.runs(*jobs.COLLECTED)
def test_every_row_is_there(ask, run_of):
    union = " UNION ALL ".join(f"SELECT '{t}' AS t, tracer, mode, count(*) AS n FROM {t} GROUP BY ALL" for t in TABLES)
    rows = {(r["t"], r["tracer"], r["mode"]): r["n"] for r in ask(jobs.COLLECTED, union)}
    written = {}
    for name in jobs.COLLECTED:
        tracer, _, mode = name.partition("/")
        written.update({(t["name"], tracer, mode): t["rows"] for t in run_of(name).done["tables"] if t["rows"]})
    assert rows == written
    assert {(t, tracer) for t, tracer, _ in rows} == {(t, tracer) for t, tracers in TABLES.items() for tracer in tracers}


@pytest.mark.runs("averages/eval", "averages/train")
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_operators_agree_with_the_averages_of_the_profiler(ask, run_of, mode):
    job = f"averages/{mode}"
    where = f"tracer = 'averages' AND mode = '{mode}'"
    rows = ask([job], f"SELECT op_index, parent_index, name, overload, dur_ns FROM ops WHERE {where}")
    rows = [{k: v for k, v in r.items() if v is not None} for r in rows]
    query = f"SELECT e.name, count(*) AS n FROM cpu_events e JOIN traces USING (trace_id) WHERE {where} AND category = 'cpu_op' GROUP BY 1"
    in_trace = {e["name"]: e["n"] for e in ask([job], query)}
    in_table = collections.Counter(r["name"] + ("." + r["overload"] if "overload" in r else "") for r in rows)
    assert in_trace == in_table
    averages = run_of(job).json("averages.json")
    assert averaged(rows) == {k: v for k, v in averages.items() if k in in_trace}
    analysed = ask([job], "analyze", "ops", "--top", "1000")  # over all profiles of the dataset
    assert {r["name"] for r in analysed} >= set(in_trace)


@pytest.mark.runs("execution_trace/eval", "execution_trace/train")
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_execution_trace_and_profile_meet_in_sql(ask, mode):
    (row,) = ask(
        [f"execution_trace/{mode}"],
        f"""
        SELECT count(*) AS operators, count(e.name) AS met, count_if(e.dur_ns = o.dur_ns) AS as_long,
          count_if(e.name IN (o.name, o.name || '.' || o.overload)) AS named, count_if(e.external_id = o.external_id) AS same_id
        FROM ops o
        JOIN traces t ON t.source = 'kineto' AND t.tracer = o.tracer AND t.model = o.model AND t.mode = o.mode
        LEFT JOIN cpu_events e ON e.trace_id = t.trace_id AND e.record_function_id = o.record_id
        WHERE o.tracer = 'execution_trace' AND o.mode = '{mode}'""",
    )
    assert row["operators"] > 200
    assert set(row.values()) == {row["operators"]}


@pytest.mark.runs("torch_profiler/train", "torch_inductor/train")
def test_steps_are_iterations_of_the_linked_trace(ask):
    rows = ask(["torch_profiler/train", "torch_inductor/train"], "SELECT * FROM ranges JOIN traces USING (trace_id) WHERE mode = 'train'")
    for tracer in ("torch_profiler", "torch_inductor"):
        names = collections.Counter(r["name"].partition("#")[0] for r in rows if r["tracer"] == tracer)
        assert names["ProfilerStep"] == names["forward"] == names["backward"] == names["optimizer"] == 1, tracer
    traces = ask([], "SELECT iteration_producer, iterations FROM traces WHERE source = 'kineto' AND framework = 'huggingface'")
    assert {(t["iteration_producer"], t["iterations"]) for t in traces} == {("ProfilerStep", 1)}


@pytest.mark.runs("breaks/eval", "torch_dynamo/eval")
def test_graph_breaks_and_guards_in_sql(ask):
    rows = ask(
        ["breaks/eval", "torch_dynamo/eval"],
        """
        SELECT b.break_index, b.reason, b.file, b.function, count(DISTINCT n.node) AS nodes
        FROM graph_breaks b LEFT JOIN graph_nodes n ON n.trace_id = b.trace_id AND n.graph_id = b.graph_before
        GROUP BY ALL""",
    )
    assert rows and all(r["file"].endswith("breaks.py") and r["function"] == "forward" and r["nodes"] > 0 for r in rows)
    query = "SELECT count(*) AS n, count(DISTINCT guard_type) AS kinds FROM guards WHERE tracer = 'torch_dynamo' AND mode = 'eval'"
    (guards,) = ask([], query)
    assert guards["n"] > 100 and guards["kinds"] > 5


@pytest.mark.runs("torch_inductor/eval", "torch_inductor/train", "torch_profiler/eval", "torch_profiler/train")
def test_from_fx_nodes_to_kernels(ask):
    needed = ["torch_inductor/eval", "torch_inductor/train", "torch_profiler/eval", "torch_profiler/train"]
    rows = [r for r in ask(needed, "analyze", "fx_to_kernels") if r["profiled_by"] == "torch_inductor"]
    for mode, passes in (("eval", 1), ("train", 3)):  # a product has two in its backward pass
        mine = [r for r in rows if r["mode"] == mode]
        products = [r for r in mine if r["event"] == "aten::mm"]
        assert {r["backend"] for r in products} == {"extern"}
        assert len({(r["graph_id"], r["node"]) for r in products}) == PRODUCTS * passes
        assert {r["events"] for r in products} == {PRODUCTS * passes}
        silu = [r for r in mine if r["target"] == "torch.nn.functional.silu"]
        assert {r["module"] for r in silu} >= {f"model.layers.{i}.mlp.act_fn" for i in range(LAYERS)}
        assert all(r["backend"] == "cpp" and "cpp_fused" in r["event"] and r["total_ns"] > 0 for r in silu)
        assert {r["origin"].split("/")[0] for r in mine if r["origin"].startswith("dynamo")} == {"dynamo"}
    layer = [r for r in rows if r["mode"] == "eval" and r["module"] == "model.layers.1.self_attn.q_proj"]
    assert {r["origin"].partition(" ")[0] for r in layer} == {"dynamo/0"} and "aten::mm" in {r["event"] for r in layer}


@pytest.mark.runs("print_fx/eval", "print_fx/train")
def test_running_again_does_nothing(run_of, lake, collection, models, tracelake):
    """The same command once more: every job is done, and nothing is imported twice."""
    for name in ("print_fx/eval", "print_fx/train"):
        assert run_of(name).done
        before = tracelake("sql", lake(name), "SELECT count(*) FROM traces", "--format", "csv").stdout
        options = [o for path in jobs.OWN for o in ("--tracer-path", HERE / path)]
        again = collection.run("huggingface", name.partition("/")[2], models / "llama", ["print_fx"], *options)
        assert again["print_fx"].report["outcome"] == "done"
        assert tracelake("sql", lake(name), "SELECT count(*) FROM traces", "--format", "csv").stdout == before
