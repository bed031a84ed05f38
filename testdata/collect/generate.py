"""Writes the output of a made-up `tracelake collect` run: python generate.py"""
# ruff: noqa: E501

import json
from pathlib import Path

HERE = Path(__file__).parent
JOB = {"model_id": "acme/tiny-llama", "revision": "0123456789abcdef0123456789abcdef01234567", "framework": "huggingface", "mode": "eval"}

COLUMNS = {
    "graph_nodes": "graph_id graph_kind graph_index:int64 node_index:int64 node op target args_json kwargs_json users_json shape_json dtype stride_json device module original_aten sequence_nr:int64 partitioner_tag from_graph_id from_node stack",
    "fusions": "graph_id kernel node original_aten node_order:int64 scheduler_node reads_json writes_json",
    "kernels_generated": "graph_id kernel backend source_path source_digest original_aten_json nodes_json num_warps:int64 num_stages:int64 shared_bytes:int64 config_json line:int64",
    "ops": "op_index:int64 step:int64 phase name overload inputs_json outputs_json kwargs_json input_bytes:int64 output_bytes:int64 flops:int64 module stack sequence_nr:int64 record_id:int64 external_id:int64 parent_index:int64 dur_ns:int64",
    "op_counts": "op count:int64 share:float64 is_view:bool",
}


def job(tracer, tables=None, success=True, artifacts=()):
    out = HERE / "acme" / "tiny-llama" / "eval" / tracer
    (out / "tables").mkdir(parents=True, exist_ok=True)
    listed = []
    for name, rows in (tables or {}).items():
        columns = [(c.split(":") + ["string"])[:2] for c in COLUMNS[name].split()]
        header = {"table": name, "columns": [{"name": n, "type": t} for n, t in columns], "tracer": tracer, "tracer_version": "1"}
        lines = [json.dumps(header)] + [json.dumps(dict(dict.fromkeys([n for n, _ in columns]), **row)) for row in rows]
        (out / "tables" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        listed.append({"name": name, "path": f"tables/{name}.jsonl", "rows": len(rows)})
    status = {
        "schema_version": 2,
        **JOB,
        "tracer": tracer,
        "tracer_version": "1",
        "success": success,
        "job_key": f"key-of-{tracer}",
        "tables": listed,
        "artifacts": list(artifacts),
    }
    (out / "_TRACE_STATUS.json").write_text(json.dumps(status, indent=2) + "\n")
    if not tables:
        (out / "tables").rmdir()
    return out


def node(graph, index, name, op, target, **more):
    kind, number = graph.split("/")
    return {
        "graph_id": graph,
        "graph_kind": kind,
        "graph_index": int(number),
        "node_index": index,
        "node": name,
        "op": op,
        "target": target,
        **more,
    }


job(
    "torch_inductor",
    {
        "graph_nodes": [
            node("dynamo/0", 0, "l_x_", "placeholder", "L_x_", shape_json="[2, 8]", dtype="float32"),
            node("dynamo/0", 1, "y", "call_function", "torch.nn.functional.silu", module="layers.0.mlp.act_fn"),
            node("dynamo/0", 2, "z", "call_function", "operator.matmul", module="layers.0.mlp.down_proj"),
            node("aot_inference/0", 0, "arg0_1", "placeholder", "arg0_1", from_graph_id="dynamo/0", from_node="l_x_"),
            node(
                "aot_inference/0",
                1,
                "sigmoid",
                "call_function",
                "aten.sigmoid.default",
                original_aten="aten.silu.default",
                from_graph_id="dynamo/0",
                from_node="y",
            ),
            node(
                "aot_inference/0",
                2,
                "mul",
                "call_function",
                "aten.mul.Tensor",
                original_aten="aten.silu.default",
                from_graph_id="dynamo/0",
                from_node="y",
            ),
            node(
                "aot_inference/0",
                3,
                "mm",
                "call_function",
                "aten.mm.default",
                original_aten="aten.mm.default",
                from_graph_id="dynamo/0",
                from_node="z",
            ),
            node("inductor/0", 0, "arg0_1", "placeholder", "arg0_1", from_graph_id="aot_inference/0", from_node="arg0_1"),
            node("inductor/0", 1, "sigmoid", "call_function", "aten.sigmoid.default", from_graph_id="aot_inference/0", from_node="sigmoid"),
            node("inductor/0", 2, "mul", "call_function", "aten.mul.Tensor", from_graph_id="aot_inference/0", from_node="mul"),
            node("inductor/0", 3, "mm", "call_function", "aten.mm.default", from_graph_id="aot_inference/0", from_node="mm"),
        ],
        "fusions": [
            {
                "graph_id": "inductor/0",
                "kernel": "triton_poi_fused_mul_sigmoid_0",
                "node": "sigmoid",
                "original_aten": "aten.silu.default",
                "node_order": 0,
            },
            {
                "graph_id": "inductor/0",
                "kernel": "triton_poi_fused_mul_sigmoid_0",
                "node": "mul",
                "original_aten": "aten.silu.default",
                "node_order": 1,
            },
            {"graph_id": "inductor/0", "kernel": "extern_kernels.mm", "node": "mm", "original_aten": "aten.mm.default", "node_order": 0},
        ],
        "kernels_generated": [
            {
                "graph_id": "inductor/0",
                "kernel": "triton_poi_fused_mul_sigmoid_0",
                "backend": "triton",
                "original_aten_json": '["aten.silu.default"]',
                "nodes_json": '["sigmoid", "mul"]',
                "num_warps": 4,
                "num_stages": 1,
                "shared_bytes": 0,
                "line": 12,
            },
            {
                "graph_id": "inductor/0",
                "kernel": "extern_kernels.mm",
                "backend": "extern",
                "original_aten_json": '["aten.mm.default"]',
                "nodes_json": '["mm"]',
                "line": 40,
            },
        ],
        "op_counts": [
            {"op": "aten.mm.default", "count": 1, "share": 0.25, "is_view": False},
            {"op": "aten.mul.Tensor", "count": 3, "share": 0.75, "is_view": False},
        ],
    },
)

job(
    "torch_dispatch",
    {
        "ops": [
            {
                "op_index": 0,
                "step": 0,
                "phase": "forward",
                "name": "aten::mm",
                "overload": "default",
                "inputs_json": '[{"shape": [2, 8], "dtype": "float32"}]',
                "input_bytes": 64,
                "output_bytes": 64,
                "flops": 256,
                "sequence_nr": 9007199254740993,
            },
            {
                "op_index": 1,
                "step": 0,
                "phase": "forward",
                "name": "aten::silu",
                "overload": "default",
                "input_bytes": 64,
                "output_bytes": 64,
            },
        ]
    },
)

job("torch_export", success=False)

out = job(
    "torch_profiler",
    artifacts=[{"path": "trace/host_7.1.pt.trace.json", "kind": "trace"}, {"path": "torch_profile.json", "kind": "report"}],
)
(out / "trace").mkdir(exist_ok=True)
(out / "torch_profile.json").write_text('{"aten::mm": [{"count": 2}]}\n')
events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 30.0, "dur": 20.0, "args": {"External id": 5}}]
for i, (name, ts) in enumerate(
    [("triton_poi_fused_mul_sigmoid_0", 10.0), ("ampere_sgemm_32x32", 35.0), ("triton_poi_fused_mul_sigmoid_0", 60.0)]
):
    c = 100 + i
    events.append(
        {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "pid": 7, "tid": 7, "ts": ts, "dur": 2.0, "args": {"correlation": c}}
    )
    args = {"correlation": c, "device": 0, "stream": 7, **({"External id": 5} if "gemm" in name else {})}
    events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts + 5, "dur": 4.0 + i, "args": args})
trace = {"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events}
(out / "trace" / "host_7.1.pt.trace.json").write_text(json.dumps(trace, indent=1) + "\n")
