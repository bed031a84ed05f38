"""A Spark cluster on this machine: a master, and a worker on an address of its own for each.

Spark starts the copy of a slow task on another host than the first attempt, so
that two workers need two addresses.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyspark
from gateway import CREDENTIALS
from lakes import SOURCES

HOSTS = ("127.0.0.1", "127.0.0.2")
STARTS_WITHIN = 120
# Jobs of seconds: compiling thoroughly and collecting in parallel costs them more than it saves.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def java():
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None)


class Cluster:
    def __init__(self, folder: Path, workers: int = 2, cores: int = 1):
        self.folder, self.running = folder, []
        log = self._start(
            "master", HOSTS[0], "org.apache.spark.deploy.master.Master", "--host", HOSTS[0], "--port", "0", "--webui-port", "0"
        )
        self.url = self._wait(log, r"Starting Spark master at (spark://\S+)")
        self.workers = []
        for i, host in enumerate(HOSTS[:workers]):
            words = [
                "--host",
                host,
                "--webui-port",
                "0",
                "--cores",
                str(cores),
                "--memory",
                "600m",
                "--work-dir",
                folder / f"work{i}",
                self.url,
            ]
            log = self._start(f"worker{i}", host, "org.apache.spark.deploy.worker.Worker", *words)
            self._wait(log, r"Successfully registered with (master)")
            self.workers.append(self.running[-1])

    def _start(self, name, host, *words):
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            p = subprocess.Popen(
                [Path(pyspark.__file__).parent / "bin" / "spark-class", *map(str, words)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment(host),
                start_new_session=True,
            )
        self.running.append(psutil.Process(p.pid))
        return log

    def _wait(self, log, pattern):
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline:
            found = re.search(pattern, log.read_text(errors="replace"))
            if found:
                return found.group(1)
            time.sleep(0.2)
        raise AssertionError(f"{pattern!r} not in {log}: {log.read_text(errors='replace')[-2000:]}")

    def command(self, *words, conf=(), master=None):
        """The command line of a job."""
        settings = {
            "spark.driver.host": HOSTS[0],
            "spark.driver.bindAddress": HOSTS[0],
            "spark.ui.enabled": "false",
            "spark.executor.memory": "500m",
            "spark.driver.memory": "600m",
            **dict(conf),
        }
        flags = [x for k, v in settings.items() for x in ("--conf", f"{k}={v}")]
        return [sys.executable, "-m", "tracelake_spark", "--master", master or self.url, *flags, *map(str, words)]

    def run(self, *words, conf=(), ok=(0,), master=None):
        done = subprocess.run(
            self.command(*words, conf=conf, master=master), capture_output=True, text=True, timeout=400, env=environment(HOSTS[0])
        )
        assert done.returncode in ok, f"exit {done.returncode}: {done.stderr[-4000:]}"
        return done

    def conversions(self):
        """Those that tasks started and that run."""
        return [p for w in self.workers for p in tree(w) if "--die-with" in words_of(p)]

    def close(self):
        for p in self.running:
            for x in [*tree(p), p]:
                try:
                    x.kill()
                except psutil.NoSuchProcess:
                    pass
        psutil.wait_procs(self.running, timeout=20)


def environment(host):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    ours = {"JAVA_TOOL_OPTIONS": JAVA, "SPARK_LOCAL_IP": host, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(SOURCES)}
    return {**env, **CREDENTIALS, **ours}


def wait_for(holds, what, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"no {what} within {seconds} s"
        time.sleep(0.01)


def words_of(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def tree(process):
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
