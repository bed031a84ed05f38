"""Runs the worker as the supervisor does: a job file, a descriptor for events.

Each job is run once and shared by all tests that look at it. Jobs of the tests
that were selected start together, two at a time, when the first one is needed.
"""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jobs
import pytest
from harness import HERE, ROOT, run_job


def collect_python():
    """A Python with torch, transformers and vLLM."""
    named = os.environ.get("TRACELAKE_HF_PYTHON")
    if named:
        return named
    made = ROOT / ".venv-collect" / "bin" / "python"
    return str(made) if made.exists() else None


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
def run_of(hf_python, models, tmp_path_factory):
    """run_of(name): the answer of that job of jobs.py."""
    pool = ThreadPoolExecutor(2)
    base = tmp_path_factory.mktemp("runs")
    futures = {}

    def start(name):
        if name not in futures:
            job = jobs.job(name, models, HERE)
            futures[name] = pool.submit(run_job, hf_python, job, base / name.replace("/", "-"))
        return futures[name]

    # The longest first, so that the other worker fills in beside them.
    for name in sorted(_wanted, key=lambda n: not n.startswith(("torch_inductor", "vllm"))):
        start(name)
    yield lambda name: start(name).result()
    pool.shutdown(cancel_futures=True)
