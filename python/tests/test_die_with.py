"""convert --die-with: a conversion ends with the process that asked for it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EVENT = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":%d,"dur":5}'

# The parent starts the conversion, says its ID and waits to be killed.
PARENT = """
import os, subprocess, sys
flags = ["--die-with", str(os.getpid())] if sys.argv[1] == "with" else []
p = subprocess.Popen([*sys.argv[2:], *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(p.pid, flush=True)
p.wait()
"""


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="SKIPPED: only Linux tells a process that its parent ended")
@pytest.mark.parametrize("how", ["with", "without"])
def test_die_with(binary, tmp_path, how):
    """With it nothing is committed once the parent was killed; without it the conversion goes on."""
    trace, lake = tmp_path / "t.json", tmp_path / "lake"
    trace.write_text('{"traceEvents":[' + ",\n".join(EVENT % i for i in range(1_000_000)) + "]}")
    words = [str(binary), "convert", "-q", "-j", "1", str(trace), "-o", str(lake)]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, how, *words], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    deadline = time.monotonic() + 60
    try:
        while not lake.exists():
            assert running(child) and time.monotonic() < deadline, "the conversion did not begin"
            time.sleep(0.002)
        parent.kill()
        parent.wait()
        while running(child):
            assert time.monotonic() < deadline, "the conversion went on for a minute"
            time.sleep(0.01)
    finally:
        parent.kill()
        if running(child):
            os.kill(child, signal.SIGKILL)
    assert len(list(lake.glob("_tracelake/commits/*.json"))) == (0 if how == "with" else 1)
