"""Where the binary and the shared traces are."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def shared_dir():
    for p in (os.environ.get("TRACELAKE_SHARED"), ROOT.parent / "shared"):
        if p and (Path(p) / "traces").is_dir():
            return Path(p)
    return None


@pytest.fixture(scope="session")
def binary():
    path = Path(os.environ.get("TRACELAKE_BIN", ROOT / "bin" / "tracelake"))
    if not path.exists():
        pytest.fail(f"{path} is missing: run make build")
    return path


@pytest.fixture(scope="session")
def shared():
    path = shared_dir()
    if path is None:
        pytest.skip("SKIPPED: no shared traces; set TRACELAKE_SHARED to run this test")
    return path


@pytest.fixture(scope="session")
def tracelake(binary):
    def run(*args, ok=(0,)):
        p = subprocess.run([str(binary), *map(str, args)], capture_output=True, text=True, timeout=600)
        assert p.returncode in ok, f"exit {p.returncode}: {p.stderr[-2000:]}"
        return p

    return run
