"""Conversions on a real Ray of one machine."""

import json
import subprocess
import sys

from lakes import ROOT, content, leftovers
from spark_cluster import environment


def test_convert(tracelake, binary, tmp_path):
    """Ray converts what one process converts; what is no trace or does not open is reported and stops nothing."""
    bad = tmp_path / "bad.json"
    bad.write_text("<html></html>")
    inputs = [ROOT / "testdata" / "demo", bad]
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    tracelake("convert", "-q", *inputs, "-o", alone, "--run", "all", ok=(3,))
    words = [
        sys.executable,
        "-m",
        "tracelake_ray",
        "--program",
        binary,
        "--task-bytes",
        1 << 16,
        *inputs,
        "-o",
        spread,
        "--",
        "--run",
        "all",
    ]
    for _ in range(2):  # the second time all of it is there
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=200, env=environment("127.0.0.1"))
        assert done.returncode == 3, done.stderr[-3000:]
        assert json.loads(done.stdout.splitlines()[-1]) == {"ok": 7, "rejected": 1}
        assert "bad.json" in done.stderr
        assert content(spread) == content(alone)
        assert leftovers(spread) == []
