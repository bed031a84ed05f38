"""An object store on this machine: the S3 gateway of Versity, which keeps objects as files."""

import os
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest
from lakes import ROOT

BUCKET = "traces"
SECRET = "a-secret-that-no-log-may-hold"
# What clients find in their environment.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIATRACELAKETEST",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
BUILT_WITHIN = 900


class Gateway:
    def __init__(self, folder: Path):
        self.root, self.folder = folder, folder / BUCKET
        self.folder.mkdir(parents=True)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{s.getsockname()[1]}"
        self.program = program()
        self.start()

    def start(self):
        env = {**os.environ, "ROOT_ACCESS_KEY": CREDENTIALS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": SECRET}
        words = [self.program, "--port", self.address, "--quiet", "--keep-alive", "posix", self.root]
        self.process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        host, _, port = self.address.partition(":")
        deadline = time.monotonic() + 30
        while True:
            try:
                return socket.create_connection((host, int(port))).close()
            except OSError:
                assert time.monotonic() < deadline, f"{self.program} does not answer"
                time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=30)

    def url(self, key):
        return f"s3://{BUCKET}/{key}?endpoint=http://{self.address}&use_path_style=true"


def program():
    """The server, built once, in the version that the tests of object stores run."""
    named = os.environ.get("TRACELAKE_VERSITYGW")
    if named:
        return named
    source = (ROOT / "internal" / "store" / "storetest" / "s3.go").read_text()
    package, version = (re.search(rf'{name}\s+= "(.*)"', source).group(1) for name in ("gateway", "gatewayVersion"))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracelake-test" / version
    built = cache / "versitygw"
    if not built.exists():
        cache.mkdir(parents=True, exist_ok=True)
        env = {**os.environ, "GOBIN": str(cache), "CGO_ENABLED": "0", "GOFLAGS": ""}
        words = ["go", "install", f"{package}@{version}"]
        try:
            done = subprocess.run(words, cwd=cache, env=env, capture_output=True, text=True, timeout=BUILT_WITHIN)
        except FileNotFoundError:
            pytest.skip("SKIPPED: object stores are not tested: no Go to build the S3 server with; TRACELAKE_VERSITYGW names one")
        if done.returncode:
            pytest.skip(f"SKIPPED: object stores are not tested: the S3 server cannot be built: {done.stderr[-500:]}")
    return built
