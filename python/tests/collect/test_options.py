"""The command's options as they reach the worker, and its subcommands on a real
interpreter."""

import json

import pytest
from harness import HERE

ECHO = HERE / "tracers" / "echo.py"
CONFIG = """
env:
  common: {MARK_COMMON: c}
  huggingface: {MARK_FRAMEWORK: f}
  vllm: {MARK_OTHER: o}
  echo: {MARK_TRACER: t}
options: {batch-size: 7, seed: 3}
tracer_options:
  echo: {warmup: 2, deep: {a: [1]}}
"""
WANTED = {
    "framework": "huggingface",
    "mode": "train",
    "tracer": "echo",
    "device": "cpu",
    "dtype": "bfloat16",
    "batch_size": 4,
    "sequence_length": 16,
    "layers": 2,
    "seed": 3,
    "dummy_weights": True,
    "trust_remote_code": True,
    "prompts": ["one line", "another"],
    "options": {"warmup": 2, "deep": {"a": [1]}},
}


@pytest.fixture
def asked(tmp_path):
    """The options that make a job as WANTED, but for the model and the tracer."""
    config, prompts = tmp_path / "config.yaml", tmp_path / "prompts.txt"
    config.write_text(CONFIG)
    prompts.write_text("one line\n\nanother\n")
    flags = "--framework huggingface --mode train --device cpu --dtype bfloat16 --batch-size 4 --sequence-length 16 --layers 2"
    switches = ["--dummy-weights", "--trust-remote-code", "--tracer-path", ECHO, "--config", config, "--prompt-file", prompts]
    return [*flags.split(), *switches, "--output-dir", tmp_path / "out"]


@pytest.fixture
def quick(bare, tmp_path, monkeypatch):
    """A Python that has something of the libraries' names: importing the real
    ones takes most of the time of a command."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    for name in ("torch", "transformers", "huggingface_hub"):
        (folder / f"{name}.py").write_text("__version__ = '1'\nclass cuda:\n    is_available = staticmethod(bool)\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return bare


@pytest.fixture
def model(tmp_path):
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text('{"model_type":"llama"}')
    (directory / "tokenizer.json").write_text("{}")
    return directory


def said(job):
    return {k: job[k] for k in WANTED}


def test_worker_hands_its_options_on(tracelake, quick, model, asked, tmp_path):
    tracelake("worker", *asked, "--model-path", model, "--tracer", "echo", "--python", quick)
    job = json.loads((tmp_path / "out" / "echo" / "job.json").read_text())
    assert said(job) == WANTED and job["model_path"] == str(model)
    marks = {k: v for k, v in job["environment"].items() if k.startswith("MARK_")}
    assert marks == {"MARK_COMMON": "c", "MARK_FRAMEWORK": "f", "MARK_TRACER": "t"}
    assert job["environment"]["HF_HUB_OFFLINE"] == "1"


def test_an_unasked_worker_trusts_nothing(tracelake, quick, model, tmp_path):
    flags = ["--framework", "huggingface", "--tracer-path", ECHO, "--tracer", "echo", "--device", "cpu", "--python", quick]
    tracelake("worker", *flags, "--model-path", model, "--output-dir", tmp_path / "out")
    job = json.loads((tmp_path / "out" / "echo" / "job.json").read_text())
    assert (job["trust_remote_code"], job["dummy_weights"], job["mode"], job["dtype"]) == (False, False, "eval", "auto")
    assert (job["batch_size"], job["sequence_length"], job["layers"], job["prompts"]) == (1, None, None, None)


def test_plan_then_collect_then_nothing(tracelake, quick, model, asked, tmp_path):
    """What the plan says is what happens, in files of lists, too."""
    models, skip = tmp_path / "models.txt", tmp_path / "skip.txt"
    models.write_text(f"# ours\n{model}\n\norg/other\n{model}\n")
    skip.write_text("org/other\n")
    command = [*asked, "--model-list", models, "--skip-model-list", skip, "--tracers", "echo", "--python", quick, "--json"]

    def plan():
        return [json.loads(line) for line in tracelake("collect", "plan", *command).stdout.splitlines()]

    (before,) = plan()
    assert before["action"] == "run" and before["tracer"] == "echo"
    report, summary = [json.loads(line) for line in tracelake("collect", *command).stdout.splitlines()]
    assert report["outcome"] == "ok" and summary["summary"]["jobs"] == 1
    (job_file,) = (tmp_path / "out").rglob("job.json")
    assert said(json.loads(job_file.read_text())) == WANTED
    (after,) = plan()
    assert after["action"] == "skip" and after["reason"]
    changed = [*command[:-1], "--layers", "1", "--json"]
    report, _ = [json.loads(line) for line in tracelake("collect", *changed).stdout.splitlines()]
    assert report["outcome"] == "ok", "another key, and still taken for done"


def test_a_changed_tracer_runs_again(tracelake, quick, model, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(ECHO.read_text())
    flags = ["--framework", "huggingface", "--model", model, "--tracers", "echo", "--tracer-path", mine, "--device", "cpu"]
    command = [*flags, "--output-dir", tmp_path / "out", "--python", quick, "--json"]

    def outcome():
        return json.loads(tracelake("collect", *command).stdout.splitlines()[0])["outcome"]

    assert [outcome(), outcome()] == ["ok", "done"]
    mine.write_text(mine.read_text() + "# changed\n")
    assert outcome() == "ok"


def test_doctor_on_an_interpreter_that_has_all(tracelake, hf_python):
    found = json.loads(tracelake("collect", "doctor", "--python", hf_python, "--json").stdout)
    assert {t["name"]: t["lacks"] for t in found["tracers"]} == {t["name"]: [] for t in found["tracers"]}
    assert len(found["tracers"]) == 10
    assert not [c for c in found["install"] if "pip install" in c]
    assert found["probe"]["libraries"]["vllm"]["version"]


@pytest.mark.runs("families/eval")
def test_huggingface_jobs_import_no_vllm(run_of):
    """Even where it is installed."""
    modules = run_of("families/eval").json("modules.json")
    assert "transformers" in modules and "vllm" not in modules


def test_a_model_without_weights_fails_before_it_is_loaded(tracelake, hf_python, models, tmp_path):
    """A shard that the index names and that is not there: vLLM never starts."""
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (broken / name).write_bytes((models / "llama" / name).read_bytes())
    (broken / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-00001-of-00001.safetensors"}}))
    for framework, tracer in (("vllm", "vllm_profiler"), ("huggingface", "torch_profiler")):
        flags = ["--framework", framework, "--tracer", tracer, "--python", hf_python, "--device", "cpu", "--model-path", broken]
        done = tracelake("worker", *flags, "--output-dir", tmp_path / framework, "--json", ok=(1,))
        report = json.loads(done.stdout.splitlines()[0])
        assert report["outcome"] == "incomplete" and "model-00001-of-00001.safetensors" in report["message"]
        assert report.get("seconds", 0) < 1
