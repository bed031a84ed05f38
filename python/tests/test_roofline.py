"""The roofline against values worked out by hand."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT


class Trace:
    """Operators one after the other, each with a kernel of a given length."""

    def __init__(self, gpu):
        self.events, self.now, self.gpu = [], 0, gpu

    def op(self, name, dims, types, concrete=(), us=10, kernel="gemm", inside=None):
        start = self.now
        if inside:
            self.now += 1
            self.op(**inside)
        if us:
            correlation = len(self.events) + 1
            args = {"correlation": correlation}
            self.add("cuda_runtime", "cudaLaunchKernel", self.now + 1, 2, 1, args)
            self.add("kernel", kernel, 100 + 50 * start, us, 0, {"device": 0, "stream": 7, "context": 1, "correlation": correlation})
        args = {"Input Dims": dims, "Input type": types, "Concrete Inputs": list(concrete)}
        self.add("cpu_op", name, start, self.now + 5 - start, 1, {} if dims is None else args)
        self.now += 7

    def add(self, cat, name, ts, dur, pid, args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": 1, "args": args})

    def write(self, path):
        path.write_text(
            json.dumps({"deviceProperties": [{"id": 0, "name": self.gpu}], "baseTimeNanoseconds": 0, "traceEvents": self.events})
        )


@pytest.fixture(scope="module")
def answer(tracelake, tmp_path_factory):
    directory = tmp_path_factory.mktemp("roofline")
    t = Trace("NVIDIA A100-SXM4-80GB")  # 312 TFLOP/s in bf16, 19.5 in fp32, 156 in tf32, 2039 GB/s
    half = "c10::BFloat16"
    matrix = {"name": "aten::mm", "dims": [[4096, 1024], [1024, 2048]], "types": [half, half], "us": 100}
    t.op("aten::linear", [[4096, 1024], [2048, 1024]], [half, half], us=0, inside=matrix)
    t.op(**matrix)
    t.op("aten::addmm", [[64], [32, 128], [128, 64], [], []], ["float"] * 3, ["", "", "", "1", "1"], us=2)
    t.op(
        "aten::addmm",
        [[64], [32, 128], [128, 64], [], []],
        ["float"] * 3,
        ["", "", "", "1", "1"],
        us=2,
        kernel="sm80_xmma_gemm_f32f32_tf32f32",
    )
    t.op("aten::baddbmm", [[8, 16, 16], [8, 16, 32], [8, 32, 16], [], []], [half] * 3, ["", "", "", "0.", "1"])
    qkv = [[2, 8, 512, 64]] * 3
    t.op("aten::_scaled_dot_product_flash_attention", qkv, [half] * 3, ["", "", "", "0.", "False"])
    t.op("aten::_scaled_dot_product_flash_attention", qkv, [half] * 3, ["", "", "", "0.", "True"])
    back = ["", "", "", "", "", "", "", "", "512", "512", "0.", "True"]
    t.op("aten::_scaled_dot_product_flash_attention_backward", [qkv[0], *qkv], [half] * 4, back)
    conv = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    image = {"dims": [[4, 16, 32, 32], [24, 16, 3, 3], [24]], "types": ["float"] * 3, "concrete": conv}
    t.op("aten::convolution", **image)
    up = {"dims": [[4, 16, 32, 32], [16, 12, 3, 3], [24]], "types": ["float"] * 3, "concrete": [*conv[:6], "True", "[1, 1]", "2"]}
    t.op("aten::convolution", **up)
    mask = ["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]"]
    t.op("aten::convolution_backward", [[4, 24, 16, 16], [4, 16, 32, 32], [24, 16, 3, 3]], ["float"] * 3, mask)
    t.op("aten::mm", None, None)
    t.op("aten::mm", [[4, 4], [4, 4]], ["c10::complex<float>"] * 2)
    t.op("aten::mm", [[4, 4], [3, 4]], [half] * 2)
    t.op("aten::_scaled_mm", [[16, 32], [32, 16], [1], [1]], ["c10::Float8_e4m3fn"] * 2 + ["float"] * 2)
    t.op("aten::bmm", [[4, 4, 4], [4, 4, 4]], [half] * 2, us=0)
    t.op("aten::add", [[4], [4]], ["float"] * 2, us=33, kernel="add")
    t.write(directory / "trace.json")
    tracelake("convert", directory / "trace.json", "-o", directory / "lake", "-q")

    def rows(*flags):
        out = tracelake("analyze", "roofline", directory / "lake", "--format", "json", *flags).stdout
        return [json.loads(line) for line in out.splitlines()]

    return rows


def test_products(answer):
    rows = {(r["op"], r["dtype"], r["shapes"]): r for r in answer()}
    r = rows["aten::mm", "bf16", "[4096, 1024] [1024, 2048]"]
    # 2 * 4096 * 1024 * 2048 FLOP and 2 * (4096 * 1024 + 1024 * 2048 + 4096 * 2048) bytes in 100 us, twice.
    assert (r["count"], r["gpu_ms"], r["gflop"], r["mbytes"]) == (2, 0.2, 17.179869, 29.360128)
    assert r["intensity"] == pytest.approx(585.143)
    assert r["tflop_per_s"] == pytest.approx(171.799)
    assert r["gb_per_s"] == pytest.approx(293.601)
    assert r["roof_pct"] == pytest.approx(100 * 171.799 / 312, abs=0.01) and r["bound_by"] == "compute"
    # 2 * 32 * 128 * 64 FLOP; 4 * (64 + 32 * 128 + 128 * 64 + 32 * 64) bytes: 9.1 FLOP per byte.
    for dtype in ("fp32", "tf32"):
        r = rows["aten::addmm", dtype, "[32, 128] [128, 64]"]
        assert (r["gflop"], r["mbytes"], r["bound_by"]) == (0.000524, 0.0576, "memory")
        assert r["roof_pct"] == pytest.approx(100 * (0.0576 / 2 * 1e3) / 2039, abs=0.01)
    # beta = 0: the sum is not read.
    r = rows["aten::baddbmm", "bf16", "[8, 16, 32] [8, 32, 16]"]
    assert (r["gflop"], r["mbytes"]) == (0.000131, round(2 * (8 * 16 * 32 * 2 + 8 * 16 * 16) / 1e6, 6))


def test_attention(answer):
    flops = sorted(r["gflop"] for r in answer() if r["op"] == "aten::_scaled_dot_product_flash_attention")
    whole = 4 * 2 * 8 * 512 * 512 * 64 / 1e9
    assert flops == pytest.approx([whole / 2, whole], abs=1e-6)
    (r,) = [r for r in answer() if r["op"].endswith("attention_backward")]
    assert r["gflop"] == pytest.approx(whole / 2 * 2.5, abs=1e-6)
    assert r["mbytes"] == pytest.approx(8 * 2 * 2 * 8 * 512 * 64 / 1e6)


def test_convolution(answer):
    forward, transposed = sorted((r for r in answer() if r["op"] == "aten::convolution"), key=lambda r: "transposed" in r["shapes"])
    # The result is 4 x 24 x 16 x 16, each value of 16 * 3 * 3 products.
    one = 2 * 4 * 24 * 16 * 16 * 16 * 9 / 1e9
    assert forward["gflop"] == pytest.approx(one, abs=1e-6)
    assert forward["mbytes"] == pytest.approx(4 * (4 * 16 * 32 * 32 + 24 * 16 * 9 + 4 * 24 * 16 * 16) / 1e6)
    assert forward["shapes"].endswith("stride [2, 2] padding [1, 1] dilation [1, 1]")
    # Each of 4 x 16 x 32 x 32 values meets 12 x 3 x 3 weights; the result is 4 x 24 x 64 x 64.
    assert transposed["gflop"] == pytest.approx(2 * 4 * 16 * 32 * 32 * 12 * 9 / 1e9, abs=1e-6)
    assert transposed["mbytes"] == pytest.approx(4 * (4 * 16 * 32 * 32 + 16 * 12 * 9 + 4 * 24 * 64 * 64) / 1e6, abs=1e-6)
    assert transposed["shapes"].endswith("transposed, output padding [1, 1]")
    (r,) = [r for r in answer() if r["op"] == "aten::convolution_backward"]
    assert r["gflop"] == pytest.approx(2 * one, abs=1e-6)


def test_nothing_is_dropped(answer):
    rows = answer()
    assert {r["bound_by"] for r in rows} == {"compute", "memory", "no shapes", "no peak", "no GPU work", "no rule", "not covered"}
    assert rows[-1]["op"] == "everything else" and rows[-1]["gpu_ms"] == 0.033
    assert sum(r["gpu_ms"] for r in rows) == pytest.approx(0.2 + 0.004 + 0.11 + 0.033)
    assert sum(r["share_pct"] for r in rows) == pytest.approx(100, abs=0.1)
    assert [r["op"] for r in answer("--top", "1")] == ["aten::mm", "everything else"]


def test_own_devices(answer, tracelake, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("gpu,gb_per_s,bf16\na100-sxm,2039,1000\n")
    r = answer("--devices", str(mine))[0]
    assert (r["op"], r["bound_by"]) == ("aten::mm", "compute" if 585.143 > 1e6 / 2039 else "memory")
    assert r["roof_pct"] == pytest.approx(17.18, abs=0.01)
    mine.write_text("gpu,speed\nx,1\n")
    p = tracelake("analyze", "roofline", tmp_path, "--devices", mine, ok=(5,))
    assert "neither" in p.stderr or "not" in p.stderr


def test_ranges_of_a_report(tracelake, tmp_path):
    """emit_nvtx(record_shapes=True) records sizes only: arithmetic is known, memory traffic is not."""

    def line(table, **row):
        return json.dumps({**row, "table": table})

    lines = [line("StringIds", id=1, value="gemm"), line("StringIds", id=2, value="cudaLaunchKernel_v7000")]
    process = 77 << 24
    for n, name in enumerate(
        (
            "aten::mm, op_id = 5, sizes = [[512, 128], [128, 256]]",
            "aten::convolution, seq = 3, op_id = 6, sizes = [[4, 16, 32, 32], [24, 16, 3, 3], [24], [], [], [], [], [], []]",
            "aten::add, sizes = [[4], [4]]",
        )
    ):
        start = 1000 * n
        lines += [
            line("NVTX_EVENTS", start=start, end=start + 500, eventType=59, globalTid=process + 78, text=name),
            line("CUPTI_ACTIVITY_KIND_RUNTIME", start=start + 100, end=start + 200, correlationId=n + 1, globalTid=process + 78, nameId=2),
            line(
                "CUPTI_ACTIVITY_KIND_KERNEL",
                **{"start": start + 300, "end": start + 400, "deviceId": 0, "contextId": 1, "streamId": 7},
                **{"correlationId": n + 1, "globalPid": process, "demangledName": 1, "shortName": 1},
            ),
        ]
    (tmp_path / "report.jsonl").write_text("\n".join(lines) + "\n")
    tracelake("convert", tmp_path / "report.jsonl", "-o", tmp_path / "lake", "-q")
    rows = [json.loads(r) for r in tracelake("analyze", "roofline", tmp_path / "lake", "--format", "json").stdout.splitlines()]
    known = [(r["op"], r["gpu_ms"], r["gflop"], r["tflop_per_s"], r["mbytes"], r["bound_by"]) for r in rows]
    flop = 2 * 512 * 128 * 256
    assert known == [
        ("aten::convolution", 0.0, None, None, None, "no arguments"),
        ("aten::mm", 0.0, round(flop / 1e9, 6), round(flop / 100 / 1e3, 3), None, "no arguments"),
        ("everything else", 0.0, None, None, None, "not covered"),
    ]


def torch_interpreter():
    named = os.environ.get("TRACELAKE_TORCH_PYTHON")
    path = Path(named) if named else ROOT / ".venv-collect" / "bin" / "python"
    if named or path.exists():
        return path
    pytest.skip("SKIPPED: no PyTorch to compare with: TRACELAKE_TORCH_PYTHON names a Python that has it")


def test_like_torch(tracelake, tmp_path):
    """FLOPs are those that PyTorch's own counter gives for the same calls."""
    p = subprocess.run([torch_interpreter(), ROOT / "python/tests/torch_flops.py"], capture_output=True, text=True, timeout=300)
    assert p.returncode == 0, p.stderr[-2000:]
    calls = [json.loads(line) for line in p.stdout.splitlines()]
    assert len(calls) > 25
    t = Trace("NVIDIA A100-SXM4-80GB")
    for c in calls:
        t.op(c["op"], c["Input Dims"], c["Input type"], c["Concrete Inputs"])
    t.write(tmp_path / "trace.json")
    tracelake("convert", tmp_path / "trace.json", "-o", tmp_path / "lake", "-q")
    out = tracelake("analyze", "roofline", tmp_path / "lake", "--top", "100", "--format", "json").stdout
    rows = [json.loads(line) for line in out.splitlines()][:-1]
    assert {r["bound_by"] for r in rows} <= {"compute", "memory"}
    assert sum(r["count"] for r in rows) == len(calls)
    assert {(r["op"], r["gflop"]) for r in rows} == {(c["op"], round(c["flop"] / 1e9, 6)) for c in calls}
