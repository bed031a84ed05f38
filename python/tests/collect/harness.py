"""Runs the worker as the supervisor does: a job file, and a pipe for its events."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WORKER = ROOT / "collect" / "worker"
HERE = Path(__file__).resolve().parent

sys.path.insert(0, str(WORKER))


class Output:
    """What a tracer left in its directory. done is its result, a success."""

    def __init__(self, output):
        self.output = output

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


class Answer(Output):
    """What a worker said and left behind."""

    def __init__(self, code, lines, log, output):
        super().__init__(output)
        self.code = code
        self.events = [json.loads(line) for line in lines]
        self.log = log

    @property
    def result(self):
        found = [e for e in self.events if e["event"] == "result"]
        assert len(found) == 1, f"{len(found)} result lines; the log ends {self.log[-3000:]}"
        assert self.events[-1] is found[0], "something follows the result"
        return found[0]

    @property
    def done(self):
        assert self.result["ok"], self.result["error"]["message"] + "\n" + self.result["error"]["traceback"]
        assert self.code == 0
        return self.result

    @property
    def error(self):
        assert self.result["ok"] is False
        assert self.code in (1, 2)
        assert "\n" not in self.result["error"]["message"]
        return self.result["error"]


class Collected(Output):
    """What a job of tracelake collect left; done is its status file."""

    def __init__(self, report):
        super().__init__(Path(report["dir"]))
        self.report = report

    @property
    def done(self):
        status = self.json("_TRACE_STATUS.json")
        said = (status.get("error") or {}).get("traceback", "")
        assert self.report["outcome"] == "ok", f"{self.report['outcome']}: {self.report.get('message')}\n{said}"
        assert status["success"] is True
        return status


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


class Collection:
    """Jobs run by tracelake collect, each imported into a dataset as it ends."""

    def __init__(self, binary, python, base):
        self.binary, self.python, self.base = binary, python, base
        self.lake = base / "lake"

    def run(self, framework, mode, model, tracers, *options):
        """Answers by tracer."""
        command = [self.binary, "collect", "--framework", framework, "--mode", mode, "--model", model, "--tracers", ",".join(tracers)]
        command += ["--output-dir", self.base / "out", "--convert", self.lake, "--python", self.python, "--device", "cpu"]
        command += ["--dtype", "float32", "--timeout", "10m", "--json", *options]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "XDG_CACHE_HOME": str(self.base / "cache")}
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env, cwd="/")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        reports = [line for line in lines if "tracer" in line]
        assert [r["tracer"] for r in sorted(reports, key=lambda r: r["tracer"])] == sorted(tracers), done.stderr[-3000:]
        return {r["tracer"]: Collected(r) for r in reports}
