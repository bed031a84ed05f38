"""Every Hugging Face tracer on a tiny Llama, in both modes, through the real libraries."""

import collections
import csv
import gzip
import json
import zipfile

import duckdb
import jobs
import pytest
from tracelake_worker import tables

LAYERS, HIDDEN, INNER, HEADS, KV, HEAD, VOCABULARY = 2, 64, 96, 2, 1, 32, 320
PARAMETERS = 3 + LAYERS * 9


def read_trace(path):
    with gzip.open(path) as f:
        return [e for e in json.load(f)["traceEvents"] if e.get("ph") == "X"]


def cpu_ops(answer):
    return collections.Counter(e["name"] for e in read_trace(answer.trace_file()) if e["cat"] == "cpu_op")


def averaged(rows):
    """Counts of the ops table by the rule of the profiler's averages: an
    operator that only calls its own other overload is one call."""
    children = collections.Counter(r["parent_index"] for r in rows if "parent_index" in r)
    by_index = {r["op_index"]: r for r in rows}

    def repeats(r):
        parent = by_index.get(r.get("parent_index"))
        return parent is not None and parent["name"] == r["name"] and children[parent["op_index"]] == 1

    return collections.Counter(r["name"] + ("." + r["overload"] if "overload" in r else "") for r in rows if not repeats(r))


def linear_flops(tokens):
    """Multiplications and additions of all weight matrices of the tiny Llama."""
    attention = HIDDEN * HEAD * (HEADS + 2 * KV) + HEADS * HEAD * HIDDEN
    return 2 * tokens * (LAYERS * (attention + 3 * HIDDEN * INNER) + HIDDEN * VOCABULARY)


def attention_flops(batch, length):
    return LAYERS * batch * HEADS * 2 * (2 * length * length * HEAD)


@pytest.mark.parametrize("run", jobs.BOTH)
def test_every_tracer_in_both_modes(run_of, run):
    answer = run_of(run)
    result = answer.done
    tracer, _, mode = run.partition("/")
    assert result["architecture"] == "LlamaForCausalLM"
    assert result["details"]["family"] == "causal_lm"
    assert result["tracer"] == tracer and result["worker"]["tracer"]["name"] == tracer
    versions = result["key_parts"]["versions"]
    assert versions["torch"] and versions["transformers"]
    phases = [p["name"] for p in result["phases"]]
    assert phases[:3] == ["import", "load_model", "inputs"] and phases[-1] == "export"
    for artifact in result["artifacts"]:
        assert (answer.output / artifact["path"]).is_file(), artifact
        assert not artifact["path"].endswith((".lock", ".json.tmp"))
    for table in result["tables"]:
        known = tables.KNOWN[table["name"]]
        head = answer.head(table["name"])
        assert [c["name"] for c in head["columns"]] == [c.name for c in known.columns]
        assert head["tracer"] == tracer
        rows = answer.table(table["name"])
        assert len(rows) == table["rows"]
        assert rows or table["name"] == "graph_breaks"
    if mode == "train" and tracer != "meta_ops":
        details = result["details"]
        assert details["loss_kind"] == "model" and details["loss"] and details["loss_finite"] is True
        assert 4 < details["loss"][0] < 8  # about ln(320) with random weights
        assert details["parameters_changed"] == details["parameters"] == PARAMETERS
        assert "labels" in details["inputs"]


@pytest.mark.parametrize("run", ["torch_profiler/eval", "torch_profiler/train"])
def test_profiler_counts(run_of, run):
    answer = run_of(run)
    profile = answer.json("torch_profile.json")
    rows = answer.table("ops")
    ours = {name: sum(r["count"] for r in shapes) for name, shapes in profile.items()}
    for name, count in averaged(rows).items():
        assert ours[name] == count, name
    assert answer.details["cpu_ops"] == len(rows) == sum(cpu_ops(answer).values())
    assert {"count", "cpu_time_total", "cuda_time_total", "self_cpu_time_total", "input_shapes", "stack"} <= set(profile["aten::linear"][0])
    assert sum(r["count"] for r in profile["aten::linear"]) == 7 * LAYERS + 1
    assert answer.json("torch_kernel_profile.json") == []
    assert list(csv.reader(open(answer.output / "torch_kernel_profile.csv"))) == [
        ["cpu_op_name", "cpu_op_total_count", "gpu_kernel_name", "gpu_kernel_total_count"]
    ]
    assert [p.name for p in answer.output.rglob("*.pt.trace.json*")] == [answer.trace_file().name]


@pytest.mark.parametrize("run", ["averages/eval", "averages/train"])
def test_profiler_agrees_with_its_own_averages(run_of, run):
    answer = run_of(run)
    averages = answer.json("averages.json")
    profile = answer.json("torch_profile.json")
    assert {k: sum(r["count"] for r in v) for k, v in profile.items()} == averages
    assert averaged(answer.table("ops")) == {k: v for k, v in averages.items() if k in cpu_ops(answer)}


@pytest.mark.parametrize("run", ["torch_profiler/eval", "torch_profiler/train"])
def test_profiler_ops(run_of, run):
    rows = run_of(run).table("ops")
    by_index = {r["op_index"]: r for r in rows}
    assert len(by_index) == len(rows)
    phases = collections.Counter(r.get("phase") for r in rows)
    if run.endswith("train"):
        assert phases["forward"] and phases["backward"] and phases["optimizer"]
        backward = {r["name"] for r in rows if r.get("phase") == "backward"}
        assert "MmBackward0" in backward or "TBackward0" in backward
        forward_numbers = {r["sequence_nr"] for r in rows if r.get("phase") == "forward" and "sequence_nr" in r}
        numbers = {r["sequence_nr"] for r in rows if r["name"].endswith("Backward0") and "sequence_nr" in r}
        assert numbers and numbers <= forward_numbers
    else:
        assert set(phases) == {"forward"}
    assert any("parent_index" in r for r in rows)
    for r in rows:
        if "parent_index" in r:
            parent = by_index[r["parent_index"]]
            assert parent["op_index"] < r["op_index"] and parent["dur_ns"] >= r["dur_ns"]
    linear = [r for r in rows if r["name"] == "aten::linear"]
    assert all("LlamaForCausalLM" in r["module"] and "Linear" in r["module"] for r in linear)
    assert all("modeling_llama.py" in r["stack"] for r in linear)
    assert all(r["step"] == 0 for r in rows)


@pytest.mark.runs("torch_dispatch/eval", "torch_dispatch/train")
def test_dispatch_flops_by_hand(run_of):
    for mode, factor in (("eval", 1), ("train", 3)):
        answer = run_of(f"torch_dispatch/{mode}")
        batch, length = answer.details["inputs"]["input_ids"]["shape"]
        products = sum(r.get("flops", 0) for r in answer.table("ops") if r["name"] in ("aten::mm", "aten::addmm", "aten::bmm"))
        assert products == factor * linear_flops(batch * length)
    attention = [r["flops"] for r in run_of("torch_dispatch/eval").table("ops") if "scaled_dot_product" in r["name"]]
    assert sum(attention) == attention_flops(batch, length)


@pytest.mark.parametrize("run", ["torch_dispatch/eval", "torch_dispatch/train"])
def test_dispatch_rows(run_of, run):
    answer = run_of(run)
    rows = answer.table("ops")
    assert [r["op_index"] for r in rows] == list(range(len(rows)))
    embedding = next(r for r in rows if r["name"] == "aten::embedding")
    assert embedding["module"] == "model.embed_tokens" and embedding["phase"] == "forward"
    table, ids = json.loads(embedding["inputs_json"])[:2]
    assert table == {"shape": [VOCABULARY, HIDDEN], "dtype": "float32", "stride": [HIDDEN, 1], "device": "cpu"}
    assert ids["dtype"] == "int64"
    assert embedding["input_bytes"] == VOCABULARY * HIDDEN * 4 + ids["shape"][1] * 8
    assert embedding["output_bytes"] == ids["shape"][1] * HIDDEN * 4
    assert "modeling_llama.py" in embedding["stack"]
    counted = answer.json("torch_dispatch.json")
    mm = sum(e["count"] for e in counted["aten.mm.default"])
    assert mm == sum(r["name"] == "aten::mm" for r in rows)
    assert all(text["inputs"].startswith("((T([") for text in counted["aten.mm.default"])
    if run.endswith("train"):
        backward = [r for r in rows if r["phase" if "phase" in r else "name"] == "backward"]
        forward = {r["sequence_nr"]: r for r in rows if r.get("phase") == "forward" and "sequence_nr" in r}
        products = [r for r in backward if r["name"] == "aten::mm"]
        assert len(products) == 2 * (7 * LAYERS + 1)
        for r in products:  # both halves of a product's backward find its module
            assert r["sequence_nr"] in forward and r["module"].endswith(("_proj", "lm_head"))
        assert any("optimizer" == r.get("phase") for r in rows)


@pytest.mark.parametrize("run", ["print_fx/eval", "print_fx/train"])
def test_print_fx(run_of, run):
    answer = run_of(run)
    fx = answer.json("print_fx.json")
    assert fx["type"] == "fx_graph"
    assert fx["graph_count"] == answer.details["dynamo"]["unique_graphs"] == 1
    assert {"name", "op", "target", "args", "kwargs", "users"} <= set(fx["nodes"][0])
    names = {n["name"] for n in fx["nodes"]}
    assert len(names) == len(fx["nodes"])
    assert all(u in names for n in fx["nodes"] for u in n["users"])
    rows = answer.table("graph_nodes")
    assert [r["node"] for r in rows] == [n["name"] for n in fx["nodes"]]
    assert {r["graph_id"] for r in rows} == {"dynamo/0"}
    attention = [r for r in rows if "scaled_dot_product_attention" in r["target"]]
    assert [r["module"] for r in attention] == [f"model.layers.{i}.self_attn" for i in range(LAYERS)]
    assert all(json.loads(r["shape_json"]) for r in attention)


@pytest.mark.runs("breaks/eval")
def test_graph_breaks_are_no_failure_and_no_graph_is_lost(run_of):
    answer = run_of("breaks/eval")
    explained = answer.json("explained.json")
    fx = answer.json("print_fx.json")
    rows = answer.table("graph_nodes")
    assert explained["graphs"] > LAYERS
    assert fx["graph_count"] == explained["graphs"] == len({r["graph_id"] for r in rows})
    assert {n["graph"] for n in fx["nodes"]} == set(range(explained["graphs"]))
    breaks = answer.table("graph_breaks")
    assert len(breaks) == explained["breaks"] > 0
    for one in breaks:
        assert one["file"].endswith("breaks.py")
        assert one["function"] == "forward" and one["line"] > 0 and "graph_break" in one["reason"]
    assert len({b["graph_before"] for b in breaks}) == len(breaks) <= explained["graphs"]


@pytest.mark.parametrize("run", ["torch_dynamo/eval", "torch_dynamo/train"])
def test_guards(run_of, run):
    answer = run_of(run)
    guards = answer.table("guards")
    assert len(guards) == answer.details["guard_count"] > 100
    assert {g["graph_id"] for g in guards} == {"dynamo/0"}
    tensors = [g for g in guards if g["guard_type"] == "TENSOR_MATCH"]
    assert tensors and any("input_ids" in g["source"] for g in tensors)
    assert answer.table("graph_breaks") == []


@pytest.mark.parametrize("run", ["print_aten_ops/eval", "print_aten_ops/train"])
def test_aten_graphs(run_of, run):
    answer = run_of(run)
    text = (answer.output / "print_aten.txt").read_text()
    rows = answer.table("graph_nodes")
    kinds = ["aot_inference"] if run.endswith("eval") else ["aot_forward", "aot_backward"]
    assert [line for line in text.splitlines() if line.startswith("=====")] == [f"===== Graph {i} =====" for i in range(len(kinds))]
    assert {r["graph_kind"] for r in rows} == {"dynamo", *kinds}
    dynamo = {r["node"] for r in rows if r["graph_kind"] == "dynamo"}
    calls = [r for r in rows if r["graph_kind"] == kinds[0] and r["op"] == "call_function"]
    assert all(r["target"].startswith("aten.") or "getitem" in r["target"] for r in calls)
    assert all(r["from_graph_id"] == "dynamo/0" and r["from_node"] in dynamo for r in calls)
    assert sum(r["target"] == "aten.mm.default" for r in calls) == 7 * LAYERS + 1
    if len(kinds) == 2:
        backward = [r for r in rows if r["graph_kind"] == "aot_backward" and r["op"] == "call_function"]
        assert sum(r["target"] == "aten.mm.default" for r in backward) == 2 * (7 * LAYERS + 1)
        forward_numbers = {r["sequence_nr"] for r in calls if "sequence_nr" in r}
        assert {r["sequence_nr"] for r in backward if r["target"] == "aten.mm.default"} <= forward_numbers


@pytest.mark.parametrize("run", ["torch_export/eval", "torch_export/train"])
def test_export(run_of, run):
    answer = run_of(run)
    rows = answer.table("graph_nodes")
    assert {r["graph_id"] for r in rows} == {"export/0"}
    assert sum(r["target"] == "aten.linear.default" for r in rows) == 7 * LAYERS + 1
    assert sum(r["op"] == "placeholder" for r in rows) >= PARAMETERS + 1
    linear = next(r for r in rows if r["target"] == "aten.linear.default")
    assert linear["module"].startswith("model.layers.0.self_attn")
    assert zipfile.is_zipfile(answer.output / "model.pt2")
    assert any("input_ids" in s for s in answer.json("torch_export.json")["inputs"])
    if run.endswith("train"):
        assert any("cross_entropy" in r["target"] for r in rows)


@pytest.mark.parametrize("run", ["execution_trace/eval", "execution_trace/train"])
def test_execution_trace_joins_completely(run_of, run):
    answer = run_of(run)
    found = answer.json("execution_trace_join.json")
    assert found["operators"] > 200
    assert found["matched"] == found["names_agree"] == found["operators"]
    assert found["kineto_only"] == 0 and found["unmatched"] == []
    kineto = [e for e in read_trace(answer.trace_file()) if e["cat"] == "cpu_op"]
    by_record = {e["args"]["Record function id"]: e for e in kineto}
    rows = answer.table("ops")
    assert len(rows) == len(kineto) == len(by_record)
    for r in rows:
        event = by_record[r["record_id"]]
        assert event["name"] in (r["name"], f"{r['name']}.{r.get('overload')}")
        assert r["dur_ns"] == round(event["dur"] * 1000)
        assert r["external_id"] == event["args"]["External id"]
    if run.endswith("train"):
        assert {"forward", "backward", "optimizer"} <= {r.get("phase") for r in rows}


@pytest.mark.parametrize("run", ["meta_ops/eval", "meta_ops/train"])
def test_meta_ops(run_of, run):
    answer = run_of(run)
    summary = answer.json("meta_ops.json")
    batch, length = summary["inputs"]["input_ids"]["shape"]
    factor = 3 if run.endswith("train") else 1
    assert summary["flops"] == factor * (linear_flops(batch * length) + attention_flops(batch, length))
    assert answer.details["flops"] == summary["flops"]
    assert summary["parameter_bytes"] == 4 * summary["parameters"]
    nodes = {r["node"]: r for r in answer.table("graph_nodes")}
    assert len(nodes) == len(answer.table("graph_nodes"))
    for node in nodes.values():
        for used in json.dumps(node.get("args_json", "")).split('{\\\\\\"node\\\\\\":\\\\\\"')[1:]:
            name = used.split('\\\\\\"')[0]
            assert node["node"] in json.loads(nodes[name]["users_json"]), (node["node"], name)
    # Each product reads the weight that the model names so.
    first = next(n for n in nodes.values() if n["target"] == "aten.mm.default")
    assert first["module"] == "model.layers.0.self_attn.q_proj"
    weight = json.loads(first["args_json"])[1]["node"]
    assert "model.layers.0.self_attn.q_proj.weight" in nodes[weight]["args_json"]


@pytest.mark.parametrize("run", ["torch_inductor/eval", "torch_inductor/train"])
def test_inductor_from_node_to_profile(run_of, run, tmp_path):
    answer = run_of(run)
    assert answer.details["provenance_problems"] == []
    graphs = answer.details["graphs"]
    expected = {"aot_inference": 1, "aot_forward": 0, "aot_backward": 0, "inductor": 1}
    if run.endswith("train"):
        expected = {"aot_inference": 0, "aot_forward": 1, "aot_backward": 1, "inductor": 2}
    assert graphs == {"dynamo": 1, **expected}

    nodes = {(r["graph_id"], r["node"]): r for r in answer.table("graph_nodes")}
    fusions = answer.table("fusions")
    kernels = answer.table("kernels_generated")
    assert {(f["graph_id"], f["node"]) for f in fusions} <= set(nodes)
    assert {(f["graph_id"], f["kernel"]) for f in fusions} == {(k["graph_id"], k["kernel"]) for k in kernels}
    assert len(fusions) == len({(f["graph_id"], f["kernel"], f["node"], f["scheduler_node"]) for f in fusions})
    for kernel in kernels:
        assert kernel["backend"] in ("cpp", "extern")
        if kernel["backend"] == "cpp":
            lines = (answer.output / kernel["source_path"]).read_text().splitlines()
            assert lines[kernel["line"] - 1].startswith(f"{kernel['kernel']} = async_compile.")
    for node in (r for r in nodes.values() if r["graph_kind"] == "inductor" and r["op"] == "call_function"):
        assert "from_node" not in node or (node["from_graph_id"], node["from_node"]) in nodes

    dumped = (answer.output / "torch_inductor.txt").read_text().splitlines()
    for name in ("ir_pre_fusion.txt", "ir_post_fusion.txt", "output_code.py", "fx_graph_transformed.py"):
        assert sum(d.endswith("/" + name) and "/debug/" in d for d in dumped) == graphs["inductor"], name
    listed = answer.json("torch_inductor_kernels.json")
    assert len(listed) == sum(k["backend"] == "cpp" for k in kernels)
    assert all({"kernel_name", "ptx", "cubin", "launch_config"} <= set(k) for k in listed)

    rows = sql(answer, tmp_path)
    products = [r for r in rows if r["target"] == "aten.mm.default"]
    assert len(products) == (7 * LAYERS + 1) * (1 if run.endswith("eval") else 3)
    assert all(r["profile_name"] == "aten::mm" and r["times"] == len(products) for r in products)
    silu = [r for r in rows if r["original_aten"] == "aten.silu.default"]
    assert silu and all(r["backend"] == "cpp" and "silu" in r["profile_name"] and r["times"] >= 1 for r in silu)
    assert all(r["times"] >= 1 for r in rows), "a kernel that the profile does not show"


def sql(answer, tmp_path):
    """From an FX node over fusions and kernels_generated to the profile, in one query."""
    events = tmp_path / "cpu_events.jsonl"
    with open(events, "w") as f:
        for e in read_trace(answer.trace_file()):
            if e["cat"] == "cpu_op":
                f.write(json.dumps({"name": e["name"]}) + "\n")

    def table(name):
        body = tmp_path / f"{name}.jsonl"
        body.write_text("".join(json.dumps(r) + "\n" for r in answer.table(name)))
        return f"read_json('{body}', format='newline_delimited', maximum_object_size=100000000)"

    found = duckdb.sql(f"""
        SELECT n.graph_id, n.node, n.target, n.original_aten, k.kernel, k.backend,
               k.config_json->>'$.profile_name' AS profile_name, count(e.name) AS times
        FROM {table("graph_nodes")} n
        JOIN {table("fusions")} f USING (graph_id, node)
        JOIN (SELECT DISTINCT graph_id, kernel, backend, config_json FROM {table("kernels_generated")}) k USING (graph_id, kernel)
        LEFT JOIN read_json('{events}', format='newline_delimited') e ON e.name = k.config_json->>'$.profile_name'
        GROUP BY ALL""")
    names = [d[0] for d in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
