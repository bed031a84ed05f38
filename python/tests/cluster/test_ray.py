"""Conversions on a real Ray of one machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lakes import ROOT, content, leftovers
from spark_cluster import environment


def test_convert(tracelake, binary, tmp_path):
    """Ray converts what one process converts; what is no trace or does not open is reported and stops nothing."""
    bad = tmp_path / "bad.json"
    bad.write_text("<html></html>")
    inputs = [ROOT / "testdata" / "demo", bad]
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    tracelake("convert", "-q", *inputs, "-o", alone, "--run", "all", ok=(3,))
    words = [
        sys.executable,
        "-m",
        "tracelake_ray",
        "--program",
        binary,
        "--task-bytes",
        1 << 16,
        *inputs,
        "-o",
        spread,
        "--",
        "--run",
        "all",
    ]
    for _ in range(2):  # the second time all of it is there
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=200, env=environment("127.0.0.1"))
        assert done.returncode == 3, done.stderr[-3000:]
        assert json.loads(done.stdout.splitlines()[-1]) == {"ok": 7, "rejected": 1}
        assert "bad.json" in done.stderr
        assert content(spread) == content(alone)
        assert leftovers(spread) == []


# Writes down which GPUs a collection was given, once as many as there are GPUs run.
WATCHED = """#!/bin/sh
[ "$1" = collect ] && echo "$CUDA_VISIBLE_DEVICES" > {place}/$$ && for i in $(seq 600); do
  [ $(ls {place} | wc -l) -ge 2 ] && break
  sleep 0.1
done
exec {program} "$@"
"""
MODEL = """
import sys
sys.path.insert(0, sys.argv[1])
import make_models as m
m.t.LlamaForCausalLM(m.t.LlamaConfig(**m.LLAMA | {"num_hidden_layers": int(sys.argv[3])})).save_pretrained(sys.argv[2])
"""


def test_collect(binary, tracelake, tmp_path):
    """Each model has a GPU of its own, as Ray counts them, and all land in one dataset. The GPUs are declared, the work is the CPU's."""
    python = os.environ.get("TRACELAKE_HF_PYTHON") or ROOT / ".venv-collect" / "bin" / "python"
    if not Path(python).exists():
        pytest.skip("SKIPPED: no environment with torch and transformers; run make venv-collect, or set TRACELAKE_HF_PYTHON")
    env = {**environment("127.0.0.1"), "OMP_NUM_THREADS": "1", "RAY_OVERRIDE_RESOURCES": '{"CPU": 2, "GPU": 2}'}
    models = [tmp_path / name for name in ("one", "two", "missing")]
    for layers, model in enumerate(models[:2], 1):
        subprocess.run([python, "-c", MODEL, ROOT / "python" / "tests" / "collect", model, str(layers)], check=True, timeout=200, env=env)
    seen, program, lake = tmp_path / "seen", tmp_path / "tracelake", tmp_path / "lake"
    seen.mkdir()
    program.write_text(WATCHED.format(place=seen, program=binary.resolve()))
    program.chmod(0o755)
    words = [sys.executable, "-m", "tracelake_ray", "collect", *models, "--program", program, "--"]
    words += ["--framework", "huggingface", "--tracers", "torch_profiler", "--device", "cpu", "--dtype", "float32"]
    words += ["--python", python, "--output-dir", tmp_path / "out", "--convert", lake]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=500, env=env)
    assert done.returncode == 3, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"ok": 2, "failed": 1}
    assert f"{models[2]}: exit code 3" in done.stderr
    given = [p.read_text().strip() for p in seen.iterdir()]
    assert len(given) == 3 and set(given) == {"0", "1"}
    query = "SELECT model, count(*) AS n FROM traces WHERE outcome = 'ok' AND cpu_events > 50 GROUP BY 1 ORDER BY 1"
    rows = tracelake("sql", lake, query, "--format", "json")
    assert [json.loads(x) for x in rows.stdout.splitlines()] == [{"model": "one", "n": 1}, {"model": "two", "n": 1}]
    assert leftovers(lake) == []
