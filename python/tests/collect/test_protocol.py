"""The worker's command line and its event channel. Needs no torch."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from harness import HERE, WORKER, run_job, worker

NAMES = [
    "torch_profiler",
    "torch_dispatch",
    "torch_dynamo",
    "print_fx",
    "print_aten_ops",
    "torch_inductor",
    "torch_export",
    "execution_trace",
    "meta_ops",
    "vllm_profiler",
]


@pytest.fixture
def model(tmp_path):
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text('{"model_type":"llama"}')
    return directory


def job(model, **fields):
    return {"framework": "huggingface", "model_path": str(model), "tracer": "probe_events", "mode": "eval", "device": "cpu", **fields}


TOOLS = str(HERE / "tracers" / "plain.py")


def test_list_needs_no_torch(bare):
    answer = worker(bare, "list")
    tracers = answer.done["tracers"]
    assert [t["name"] for t in tracers] == NAMES
    assert answer.done["errors"] == []
    for t in tracers:
        assert t["description"] and t["version"] and t["requires"] and t["files"], t["name"]
        assert t["source"] == "built-in"
    by_name = {t["name"]: t for t in tracers}
    assert by_name["vllm_profiler"]["frameworks"] == ["vllm"] and by_name["vllm_profiler"]["modes"] == ["eval"]
    assert by_name["meta_ops"]["needs_weights"] is False
    assert by_name["torch_inductor"]["tables"] == ["graph_nodes", "fusions", "kernels_generated"]


def test_describe(bare):
    answer = worker(bare, "describe", "torch_dynamo").done
    assert answer["tracer"]["tables"] == ["graph_nodes", "graph_breaks", "guards"]
    assert [c["name"] for c in answer["columns"]["guards"]] == ["guard_index", "graph_id", "guard_type", "source", "code", "stack"]
    error = worker(bare, "describe", "no_such_tracer").error
    assert error["class"] == "bad_request" and "torch_profiler" in error["message"]


def test_probe_says_what_is_missing(bare):
    answer = worker(bare, "probe", "--vllm-architectures").done
    torch = answer["libraries"]["torch"]
    assert torch == {"version": None, "importable": False, "error": "ModuleNotFoundError: No module named 'torch'"}
    assert answer["cuda"]["device_count"] == 0
    assert answer["vllm_architectures"] is None
    assert answer["python"]["executable"] == sys.executable


def test_without_a_descriptor_the_answer_is_on_stdout(bare):
    env = {k: v for k, v in os.environ.items() if k != "TRACELAKE_EVENTS_FD"} | {"PYTHONPATH": str(WORKER)}
    done = subprocess.run([bare, "-m", "tracelake_worker", "list"], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["result"]


def test_missing_library_is_one_line(bare, model, tmp_path):
    answer = run_job(bare, job(model, tracer="torch_profiler"), tmp_path / "run")
    assert answer.error["class"] == "missing_library"
    assert answer.error["message"] == f"tracer torch_profiler needs the Python package torch, which {sys.executable} does not have"
    assert answer.code == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "both"}, "mode 'both'"),
        ({"dtype": "float8"}, "dtype 'float8'"),
        ({"batch_size": 0}, "batch_size 0"),
        ({"batch_size": "4"}, "batch_size must be an integer"),
        ({"batch_size": True}, "batch_size must be an integer"),
        ({"sequence_length": -1}, "sequence_length -1"),
        ({"layers": 0}, "layers 0"),
        ({"prompts": []}, "prompts"),
        ({"prompts": [1]}, "prompts"),
        ({"prompts": ["a", ""]}, "prompts"),
        ({"framework": "jax"}, "framework 'jax'"),
        ({"protocol": 2}, "protocol 2"),
        ({"tracer": "nothing"}, "no tracer 'nothing'"),
        ({"tracer": "vllm_profiler"}, "is for vllm"),
        ({"output_dir": "/nowhere/at/all"}, "output_dir"),
        ({"model_path": "/nowhere/at/all"}, "model_path"),
        ({"model_path": None}, "model_path"),
        ({"heartbeat_seconds": 0}, "heartbeat_seconds"),
    ],
)
def test_bad_requests(bare, model, tmp_path, change, message):
    answer = run_job(bare, {**job(model, tracer_path=[TOOLS]), **change}, tmp_path / "run")
    assert answer.error["class"] == "bad_request"
    assert message in answer.error["message"]


@pytest.mark.parametrize("text", ["", "{", "[]", '"run"', "[" * 5000, "\x00"])
def test_broken_job_files(bare, tmp_path, text):
    path = tmp_path / "job.json"
    path.write_text(text)
    error = worker(bare, "run", "--job", path).error
    assert error["class"] == "bad_request" and str(path) in error["message"]
    missing = worker(bare, "run", "--job", tmp_path / "none.json").error
    assert missing["class"] == "bad_request" and "none.json" in missing["message"]


def test_wrong_command_line(bare):
    answer = worker(bare, "trace")
    assert answer.code == 2 and answer.error["class"] == "bad_request"


def test_unsupported_mode(bare, model, tmp_path):
    answer = run_job(bare, job(model, framework="vllm", tracer="vllm_profiler", mode="train"), tmp_path / "run")
    assert answer.error["class"] == "unsupported"


def test_events_of_a_run(bare, model, tmp_path):
    """Prints, forks and children of the tracer leave the channel clean."""
    answer = run_job(bare, job(model, tracer_path=[TOOLS], options={"seconds": 1.3}), tmp_path / "run")
    result = answer.done
    kinds = [e["event"] for e in answer.events]
    assert kinds[0] == "start" and answer.events[0]["tracer"] == {"name": "probe_events", "version": "1"}
    assert kinds.count("heartbeat") >= 2
    assert all(e["rss_bytes"] > 0 for e in answer.events if e["event"] == "heartbeat")
    assert [e["name"] for e in answer.events if e["event"] == "phase"] == ["import", "trace", "export"]
    assert "noise on stdout" in answer.log and "noise of a child" in answer.log
    assert result["tables"] == [{"name": "numbers", "path": "tables/numbers.jsonl", "rows": 3}]
    # The supervisor finds unnamed.bin, which the tracer does not name.
    assert result["artifacts"] == [{"path": "note.txt", "kind": "report"}, {"path": "tables/numbers.jsonl", "kind": "table"}]
    assert answer.table("numbers") == [{"n": 0, "half": 0.0}, {"n": 1, "half": 0.5}, {"n": 2, "half": 1.0, "text": "two"}]
    assert answer.head("numbers")["columns"][1] == {"name": "half", "type": "float64", "unit": "ns", "doc": "half of it"}
    assert result["details"]["not_a_number"] == "nan"


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("memory", "oom_host"),
        ("library", "missing_library"),
        ("not_implemented", "unsupported"),
        ("plain", "tracer"),
        ("undeclared", "tracer"),
        ("unwritten", "tracer"),
        ("wrong_type", "tracer"),
    ],
)
def test_failures_are_classified(bare, model, tmp_path, how, expected):
    answer = run_job(bare, job(model, tracer_path=[TOOLS], options={"fail": how}), tmp_path / "run")
    assert answer.error["class"] == expected
    assert answer.code == 1
    assert answer.error["traceback"]


def test_exit_without_a_result(bare, model, tmp_path):
    answer = run_job(bare, job(model, tracer_path=[TOOLS], options={"fail": "exit"}), tmp_path / "run")
    assert not [e for e in answer.events if e["event"] == "result"]


def test_descriptor_that_is_not_open(bare, model, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(WORKER), "TRACELAKE_EVENTS_FD": "97"}
    done = subprocess.run([bare, "-m", "tracelake_worker", "list"], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 1 and "TRACELAKE_EVENTS_FD" in done.stderr


def test_a_reader_that_goes_away(bare, model, tmp_path):
    """Without a reader the run is no success, and the log says why."""
    output = tmp_path / "output"
    output.mkdir()
    path = tmp_path / "job.json"
    path.write_text(json.dumps({**job(model, tracer_path=[TOOLS], options={"seconds": 0.5}), "output_dir": str(output)}))
    read, write = os.pipe()
    env = {**os.environ, "PYTHONPATH": str(WORKER), "TRACELAKE_EVENTS_FD": str(write)}
    command = [bare, "-m", "tracelake_worker", "run", "--job", str(path)]
    process = subprocess.Popen(command, pass_fds=[write], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    os.close(write)
    os.close(read)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "does not read any more" in log


def test_terminated(bare, model, tmp_path):
    output = tmp_path / "output"
    output.mkdir()
    path = tmp_path / "job.json"
    path.write_text(json.dumps({**job(model, tracer_path=[TOOLS], options={"seconds": 30.0}), "output_dir": str(output)}))
    env = {k: v for k, v in os.environ.items() if k != "TRACELAKE_EVENTS_FD"} | {"PYTHONPATH": str(WORKER)}
    process = subprocess.Popen(
        [bare, "-m", "tracelake_worker", "run", "--job", str(path)], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    while not (output / "note.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 143
    assert b'"result"' not in out
