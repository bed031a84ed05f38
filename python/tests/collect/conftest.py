"""Runs the worker as the supervisor does: a job file, a descriptor for events.

Each job is run once and shared by all tests that look at it. Jobs of the tests
that were selected start together, two at a time, when the first one is needed.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jobs
import pytest

ROOT = Path(__file__).resolve().parents[3]
WORKER = ROOT / "collect" / "worker"
HERE = Path(__file__).resolve().parent

sys.path.insert(0, str(WORKER))


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


class Answer:
    """What a worker said and left behind."""

    def __init__(self, code, lines, log, output):
        self.code = code
        self.events = [json.loads(line) for line in lines]
        self.log = log
        self.output = output

    @property
    def result(self):
        found = [e for e in self.events if e["event"] == "result"]
        assert len(found) == 1, f"{len(found)} result lines; the log ends {self.log[-3000:]}"
        assert self.events[-1] is found[0], "something follows the result"
        return found[0]

    @property
    def done(self):
        """The result, which must be a success."""
        assert self.result["ok"], self.result["error"]["message"] + "\n" + self.result["error"]["traceback"]
        assert self.code == 0
        return self.result

    @property
    def error(self):
        assert self.result["ok"] is False
        assert self.code in (1, 2)
        assert "\n" not in self.result["error"]["message"]
        return self.result["error"]

    @property
    def details(self):
        return self.done["details"]

    def json(self, name):
        return json.loads((self.output / name).read_text())

    def head(self, name):
        with open(self.output / "tables" / f"{name}.jsonl") as f:
            return json.loads(f.readline())

    def table(self, name):
        with open(self.output / "tables" / f"{name}.jsonl") as f:
            next(f)
            return [json.loads(line) for line in f]

    def trace_file(self):
        found = [a["path"] for a in self.done["artifacts"] if a["kind"] == "trace" and ".pt.trace.json" in a["path"]]
        assert len(found) == 1, found
        return self.output / found[0]


def worker(python, *arguments, environment=None, timeout=600, output=None):
    """Runs python -m tracelake_worker with a pipe for its events."""
    read, write = os.pipe()
    env = {
        **os.environ,
        "PYTHONPATH": str(WORKER),
        "OMP_NUM_THREADS": "1",
        "TRACELAKE_EVENTS_FD": str(write),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        **(environment or {}),
    }
    command = [str(python), "-m", "tracelake_worker", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[write], env=env, cwd="/")
    os.close(write)
    with ThreadPoolExecutor(1) as pool, os.fdopen(read, encoding="utf-8") as events:
        lines = pool.submit(lambda: list(events))
        try:
            log, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            log, _ = process.communicate()
            raise AssertionError(f"{command} ran past {timeout} s: {log[-3000:]!r}") from None
        return Answer(process.returncode, lines.result(), log.decode("utf-8", "replace"), output)


def run_job(python, job, directory, **options):
    directory.mkdir(parents=True, exist_ok=True)
    output = directory / "output"
    output.mkdir()
    path = directory / "job.json"
    path.write_text(json.dumps({"protocol": 1, "output_dir": str(output), "heartbeat_seconds": 0.5, **job}))
    return worker(python, "run", "--job", path, output=output, **options)


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
