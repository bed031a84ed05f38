"""Runs the tracers, through tracelake collect or as that runs the worker.

Each job is run once and shared by all tests that look at it. Jobs of the tests
that were selected start together, two at a time, when the first one is needed.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jobs
import pytest
from harness import HERE, ROOT, Collection, run_job


def collect_python():
    """A Python with torch, transformers and vLLM."""
    named = os.environ.get("TRACELAKE_HF_PYTHON")
    if named:
        return named
    made = ROOT / ".venv-collect" / "bin" / "python"
    return str(made) if made.exists() else None


@pytest.fixture(scope="session")
def bare():
    """A Python that has no torch, as on a machine without a GPU stack."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return sys.executable
    pytest.skip("SKIPPED: this Python has torch; these tests look at one without")


@pytest.fixture(scope="session")
def hf_python():
    path = collect_python()
    if path is None:
        pytest.skip("SKIPPED: no environment with torch and vLLM; run make test-collect, or set TRACELAKE_HF_PYTHON")
    if not Path(path).exists():
        pytest.fail(f"TRACELAKE_HF_PYTHON={path} does not exist")
    return path


@pytest.fixture(scope="session")
def models(hf_python, tmp_path_factory):
    directory = tmp_path_factory.mktemp("models")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    made = subprocess.run([hf_python, HERE / "make_models.py", directory], capture_output=True, text=True, timeout=300, env=env)
    assert made.returncode == 0, made.stderr[-3000:]
    return directory


_wanted = []


def pytest_configure(config):
    config.addinivalue_line("markers", "runs(*names): jobs of jobs.py that the test looks at")


def pytest_collection_finish(session):
    for item in session.items:
        for mark in item.iter_markers("runs"):
            _wanted.extend(n for n in mark.args if n not in _wanted)
        spec = getattr(item, "callspec", None)
        name = spec.params.get("run") if spec else None
        if isinstance(name, str) and name not in _wanted:
            _wanted.append(name)


@pytest.fixture(scope="session")
def collection(binary, hf_python, tmp_path_factory):
    return Collection(binary, hf_python, tmp_path_factory.mktemp("collection"))


@pytest.fixture(scope="session")
def run_of(hf_python, models, collection, tmp_path_factory):
    """run_of(name): the answer of that job of jobs.py."""
    pool = ThreadPoolExecutor(2)
    base = tmp_path_factory.mktemp("runs")
    futures = {}

    def collect(framework, mode):
        tracers = [n.partition("/")[0] for n in _wanted if n in jobs.COLLECTED and n.endswith("/" + mode)]
        tracers = [t for t in tracers if t.startswith("vllm") == (framework == "vllm")]
        if not tracers:
            return None
        options = [o for path in jobs.OWN for o in ("--tracer-path", HERE / path)]
        if framework == "vllm":
            prompts = base / "prompts.txt"
            prompts.write_text("".join(p + "\n" for p in jobs.PROMPTS))
            options += ["--prompt-file", prompts]
        return pool.submit(collection.run, framework, mode, models / "llama", tracers, *options)

    # The longest first, so that the other worker fills in beside them.
    collected = {(f, m): collect(f, m) for f, m in (("huggingface", "train"), ("huggingface", "eval"), ("vllm", "eval"))}
    for name in _wanted:
        if name in jobs.OTHERS:
            futures[name] = pool.submit(run_job, hf_python, jobs.job(name, models), base / name.replace("/", "-"))

    def answer(name):
        if name in futures:
            return futures[name].result()
        tracer, _, mode = name.partition("/")
        return collected["vllm" if tracer.startswith("vllm") else "huggingface", mode].result()[tracer]

    yield answer
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def lake(run_of, collection):
    """The dataset, with the jobs that the test is marked with."""

    def complete(*names):
        for name in names:
            assert run_of(name).done
        return collection.lake

    return complete
