"""Tracers of users: the example of docs/collect-tracers.md as it stands there,
packages and entry points."""

import json
import os
import re

import pytest
from harness import ROOT, WORKER, Collection, worker
from test_tracers import LAYERS

DOCUMENT = ROOT / "docs" / "collect-tracers.md"


def block(language):
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text(), re.M | re.S)
    return text


@pytest.fixture
def example(tmp_path):
    text = block("python")
    assert len(text.splitlines()) < 100
    path = tmp_path / "module_times.py"
    path.write_text(text)
    return path


def test_the_example_is_found_without_torch(bare, example):
    answer = worker(bare, "list", "--tracer-path", example).done
    assert answer["errors"] == []
    (found,) = [t for t in answer["tracers"] if t["name"] == "module_times"]
    assert found["tables"] == ["module_times"] and found["source"] == str(example)


def test_the_example_runs_into_the_dataset(binary, hf_python, models, tracelake, example, tmp_path):
    collection = Collection(binary, hf_python, tmp_path)
    answer = collection.run("huggingface", "train", models / "llama", ["module_times"], "--tracer-path", example)["module_times"]
    done = answer.done
    assert answer.details["modules"] > 10 * LAYERS
    assert done["key_parts"]["tracer_source"] and answer.json("module_times.json")["slowest"][0] == ""
    rows = [json.loads(line) for line in tracelake("sql", collection.lake, block("sql"), "--format", "json").stdout.splitlines()]
    by_class = {r["class_name"]: r for r in rows}
    assert by_class["LlamaDecoderLayer"]["calls"] == 3 * LAYERS
    assert by_class["Linear"]["calls"] == 3 * (7 * LAYERS + 1)
    assert by_class["LlamaForCausalLM"]["total_ms"] > by_class["LlamaDecoderLayer"]["total_ms"] > 0


def test_the_dataset_of_the_config_file(binary, hf_python, models, tracelake, example, tmp_path):
    """As with --convert: what ran in this call is in it."""
    config, lake = tmp_path / "c.yaml", tmp_path / "lake"
    config.write_text(f"options: {{convert: {lake}, device: cpu, tracer-path: {example}}}\n")
    words = ["collect", "--framework", "huggingface", "--mode", "eval", "--model", models / "llama", "--tracers", "module_times"]
    tracelake(*words, "--output-dir", tmp_path / "out", "--python", hf_python, "--config", config)
    assert json.loads(tracelake("sql", lake, "select count(*) n from traces", "--format", "json").stdout)["n"] == 1


def test_entry_points(bare, example, tmp_path):
    """As an installed package declares them."""
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    declared = re.search(r"^(\w+) = \"my_package\.(\w+:\w+)\"$", block("toml"), re.M)
    broken = "broken = no_such_module_at_all:Tracer\n"
    (info / "entry_points.txt").write_text(f"[tracelake.tracers]\n{declared[1]} = {declared[2]}\n{broken}")
    answer = worker(bare, "list", environment={"PYTHONPATH": os.pathsep.join([str(WORKER), str(tmp_path)])}).done
    (found,) = [t for t in answer["tracers"] if t["name"] == "module_times"]
    assert found["source"] == "entry point module_times"
    (error,) = answer["errors"]
    assert error["source"] == "entry point broken" and "no_such_module_at_all" in error["message"]


def test_packages(bare, example, tmp_path):
    """A folder, with modules below it; a broken module and a taken name cost nothing else."""
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    example.rename(package / "times.py")
    (package / "taken.py").write_text("from tracelake_worker import Tracer\nclass T(Tracer):\n    name = 'torch_profiler'\n")
    bad = tmp_path / "bad.py"
    bad.write_text("raise RuntimeError('not today')\n")
    answer = worker(bare, "list", "--tracer-path", package, "--tracer-path", bad).done
    (found,) = [t for t in answer["tracers"] if t["name"] == "module_times"]
    assert found["source"] == str(package)
    said = {e["source"]: e["message"] for e in answer["errors"]}
    assert "not today" in said[str(bad)] and "taken" in said[str(package)]
    assert {t["source"] for t in answer["tracers"] if t["name"] == "torch_profiler"} == {"built-in"}
