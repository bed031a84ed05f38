"""Parts of the worker by themselves, on inputs that a machine without a GPU,
or without vLLM, does not give."""

import json
import os
import types

import pytest
from tracelake_worker import engine, inductor, signatures
from tracelake_worker.errors import WorkerError
from tracelake_worker.fxgraph import Book
from tracelake_worker.job import Job
from tracelake_worker.tracer import Context
from tracelake_worker.tracers.torch_inductor import TorchInductor
from tracelake_worker.tracers.vllm_profiler import VllmProfiler, phase


def job(**fields):
    return Job(**{"framework": "vllm", "tracer": "vllm_profiler", **fields})


SOURCE = """
import torch
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
import triton
def triton_poi_fused_add_0(): pass
''', device_str='cuda')
"""


def test_variants_of_a_triton_kernel_are_all_kept(tmp_path):
    """One name, two compiled variants: both have their metadata, PTX and cubin."""
    program = tmp_path / "inductor_dump" / "debug" / "m0"
    program.mkdir(parents=True)
    (program / "output_code.py").write_text(SOURCE)
    for i, warps in enumerate((4, 8)):
        folder = tmp_path / "inductor_dump" / "triton" / f"hash{i}"
        folder.mkdir(parents=True)
        meta = {"name": "triton_poi_fused_add_0", "num_warps": warps, "num_stages": 2, "shared": 128 * warps, "hash": str(i)}
        (folder / "triton_poi_fused_add_0.json").write_text(json.dumps(meta))
        for suffix in ("ptx", "cubin"):
            (folder / f"triton_poi_fused_add_0.{suffix}").write_text("x")
        (folder / "__grp__triton_poi_fused_add_0.json").write_text("{}")
        (folder / "broken.json").write_text("{")
    ctx = Context(job=job(framework="huggingface"), output_dir=str(tmp_path), tracer=TorchInductor())
    watch = inductor.Watch(ctx, Book())
    kernel = inductor.Kernel("inductor/0", "triton_poi_fused_add_0", "triton", "triton_poi_fused_add_0", str(program))
    kernel.extend(["add"], ["op0"], ["arg0_1"], ["buf0"])
    watch.kernels["inductor/0", kernel.name] = kernel
    watch.calls.append(("inductor/0", kernel.name, ["add"], ["op0"], ["arg0_1"], ["buf0"]))
    report = inductor.write_tables(ctx, watch)
    artifacts, _ = ctx.finish()
    assert {a["path"] for a in artifacts} == {"tables/kernels_generated.jsonl", "tables/fusions.jsonl"}  # no file that nobody named
    rows = [json.loads(line) for line in (tmp_path / "tables" / "kernels_generated.jsonl").read_text().splitlines()[1:]]
    assert [(r["num_warps"], r["num_stages"], r["shared_bytes"]) for r in rows] == [(4, 2, 512), (8, 2, 1024)]
    assert {(r["backend"], r["line"], r["source_path"]) for r in rows} == {("triton", 3, "inductor_dump/debug/m0/output_code.py")}
    assert [k["launch_config"]["num_warps"] for k in report] == [4, 8]
    assert [k["cubin"] for k in report] == [f"inductor_dump/triton/hash{i}/triton_poi_fused_add_0.cubin" for i in range(2)]
    (fusion,) = [json.loads(line) for line in (tmp_path / "tables" / "fusions.jsonl").read_text().splitlines()[1:]]
    assert fusion["node"] == "add" and json.loads(fusion["writes_json"]) == ["buf0"]


def tensor(shape, dtype, stride=None):
    return {"shape": shape, "dtype": dtype, "stride": stride or signatures.contiguous(shape), "device": "cpu"}


@pytest.mark.parametrize(
    ("values", "kwargs", "text"),
    [
        ([tensor([2, 3], "float32"), 1], {}, "((T([2, 3], f32), 1), {})"),
        ([tensor([2, 3], "float8_e4m3fn", [1, 2])], {}, "((T([2, 3], f8e4m3fn, stride=(1, 2)),), {})"),
        ([tensor([], "complex64")], {"alpha": 2.5}, "((T([], c64),), {'alpha': 2.5})"),
        ([tensor([4], "a_type_of_tomorrow"), None, "sum"], {}, "((T([4], a_type_of_tomorrow), None, 'sum'), {})"),
        ([[tensor([1], "int64"), tensor([0, 2], "bool")]], {}, "(([T([1], i64), T([0, 2], b8)],), {})"),
    ],
)
def test_signatures(values, kwargs, text):
    assert signatures.signature(values, kwargs) == text


def test_engine_arguments(tmp_path, monkeypatch):
    """What was asked for reaches the engine, and nothing is trusted unasked."""
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": 32, "layer_types": ["full"] * 32, "hidden_size": 8}))
    record = {"stack": True, "shapes": True, "memory": False, "flops": True}
    monkeypatch.setattr(engine, "profiling", lambda *_: {"profiler_config": 1})
    plain = engine.arguments(job(), str(tmp_path), "/traces", record)
    assert plain["trust_remote_code"] is False and plain["tensor_parallel_size"] == 1 and "load_format" not in plain
    assert plain["profiler_config"] == 1 and plain["enforce_eager"] is True
    fields = {"tensor_parallel_size": 4, "dtype": "bfloat16", "layers": 2, "dummy_weights": True, "trust_remote_code": True}
    asked = job(**fields, options={"max_model_len": 64})
    given = engine.arguments(asked, str(tmp_path), "/traces", record)
    assert given["tensor_parallel_size"] == 4 and given["dtype"] == "bfloat16" and given["trust_remote_code"] is True
    assert given["load_format"] == "dummy" and given["max_model_len"] == 64
    assert given["hf_overrides"] == {"num_hidden_layers": 2, "layer_types": ["full"] * 2}
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(WorkerError, match="how many layers"):
        engine.arguments(asked, str(tmp_path), "/traces", record)


def test_profiler_of_old_and_new_engines(monkeypatch):
    """A configuration since vLLM 0.13, of which only fields that it has; the
    environment before."""
    record = {"stack": False, "shapes": True, "memory": False, "flops": True}
    for name in list(os.environ):
        if name.startswith("VLLM_TORCH_PROFILER"):
            monkeypatch.delenv(name)
    modules = {"vllm": types.ModuleType("vllm"), "vllm.config": types.ModuleType("vllm.config")}
    for name, module in modules.items():
        monkeypatch.setitem(__import__("sys").modules, name, module)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert engine.profiling("/traces", record) == {}
    assert os.environ["VLLM_TORCH_PROFILER_DIR"] == "/traces"
    assert (os.environ["VLLM_TORCH_PROFILER_WITH_STACK"], os.environ["VLLM_TORCH_PROFILER_WITH_FLOPS"]) == ("0", "1")

    class ProfilerConfig:
        __dataclass_fields__ = ("profiler", "torch_profiler_dir", "torch_profiler_with_stack")

    modules["vllm.config"].ProfilerConfig = ProfilerConfig
    given = engine.profiling("/traces", record)["profiler_config"]
    assert given == {"profiler": "torch", "torch_profiler_dir": "/traces", "torch_profiler_with_stack": False}


def test_traces_of_all_ranks_and_nothing_else(tmp_path):
    names = ["rank1.2.pt.trace.json.gz", "rank0.1.pt.trace.json.gz"]
    for name in [*names, "_TRACE_STATUS.json", "host.async_llm.3.pt.trace.json.gz", "rank0.profiler_out.txt"]:
        (tmp_path / name).write_text("{}")
    assert VllmProfiler().wait(str(tmp_path)) == sorted(names)


def test_a_trace_that_never_comes(tmp_path, monkeypatch):
    monkeypatch.setattr("tracelake_worker.tracers.vllm_profiler.FLUSH_SECONDS", 0.1)
    monkeypatch.setattr("tracelake_worker.tracers.vllm_profiler.SETTLE_SECONDS", 0.01)
    (tmp_path / "rank0.1.pt.trace.json").write_text("")
    with pytest.raises(WorkerError, match="wrote no trace"):
        VllmProfiler().wait(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("execute_context_1(15)_generation_0(0)", "prefill"),
        ("execute_context_2(30)_generation_3(3)", "prefill"),
        ("execute_context_0(0)_generation_8(8)", "decode"),
        ("execute_12_context_0(sq0sk0sqsq0sqsk0)_generation_1(sq1sk9sqsq1sqsk9)", "decode"),
        ("execute_model", None),
        ("ProfilerStep#3", None),
    ],
)
def test_phases_of_steps(name, expected):
    assert phase(name) == expected
