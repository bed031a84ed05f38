"""What comes with the program: completions, manual pages, releases."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
from conftest import ROOT

# What the package bash-completion gives to completions, as far as one line needs it.
BASH = """
_init_completion() { cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD; }
__ltrim_colon_completions() { :; }
compopt() { :; }
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
__start_tracelake
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("conv", {"convert"}),
        ("analyze kernel-se", {"kernel-sequences"}),
        ("convert --die", {"--die-with"}),
    ],
)
def test_bash_completes(binary, tracelake, tmp_path, line, expected):
    script = tmp_path / "tracelake.bash"
    script.write_text(tracelake("completion", "bash").stdout)
    env = {**os.environ, "PATH": f"{binary.resolve().parent}:{os.environ['PATH']}"}
    words = ["bash", "--norc", "-c", BASH, "bash", script, "tracelake", *line.split(" ")]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert done.stderr == ""
    assert {x.partition("=")[0].strip() for x in done.stdout.splitlines()} == expected


@pytest.mark.parametrize(("shell", "mark"), [("zsh", "#compdef tracelake"), ("fish", "complete -c tracelake")])
def test_other_shells(tracelake, tmp_path, shell, mark):
    """The shells that are here read their completion."""
    script = tmp_path / shell
    script.write_text(tracelake("completion", shell).stdout)
    assert mark in script.read_text() and "__complete" in script.read_text()
    if shutil.which(shell):
        assert subprocess.run([shell, "-n", script]).returncode == 0


def commands(tracelake, *above):
    """All commands that help lists, and those below them."""
    text = tracelake(*above, "--help").stdout
    listed = re.search(r"^(?:Available )?Commands:\n((?:  .*\n)+)", text, re.M)
    for name in re.findall(r"^  (\S+)", listed.group(1), re.M) if listed else []:
        if name != "help":
            yield [*above, name], tracelake(*above, name, "--help").stdout
            yield from commands(tracelake, *above, name)


def test_manual_pages(tracelake, tmp_path):
    """A page for every command, with every flag of it, that a formatter has nothing to say about."""
    tracelake("man", tmp_path)
    seen = 0
    for words, text in commands(tracelake):
        page = tmp_path / f"tracelake-{'-'.join(words)}.1"
        assert page.exists(), words
        source = page.read_text().replace("\\-", "-")
        flags = set(re.findall(r"^ +(?:-\w, |    )(--[a-z0-9-]+)", text, re.M)) - {"--help"}
        assert not [f for f in flags if f not in source], words
        seen += len(flags)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-K", "utf-8", page], capture_output=True, text=True)
            assert done.returncode == 0 and done.stderr == "", page
    assert seen > 100


def test_release(binary, tmp_path):
    """The script, over a program that is built: archives, wheel, components, and checksums of all of them."""
    env = {**os.environ, "RELEASE_PROGRAM": str(binary.resolve()), "RELEASE_SMALL": ""}
    out = tmp_path / "dist"
    done = subprocess.run([ROOT / "scripts" / "release.sh", "1.2.3", out, sys.executable], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    sums = dict(reversed(line.split()) for line in (out / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {p.name for p in out.iterdir()} - {"SHA256SUMS"} and len(sums) == 3
    for name, digest in sums.items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    (archive,) = (n for n in sums if n.endswith(".tar.gz"))
    with tarfile.open(out / archive) as tar:
        members = tar.getmembers()
        assert {(m.uid, m.gid, m.mtime) for m in members} == {(0, 0, 0)}, "nothing of the machine or the hour"
        names = {n.partition("/")[2] for n in tar.getnames()}
        program = tar.extractfile(f"{archive.removesuffix('.tar.gz')}/tracelake").read()
    assert program == binary.read_bytes()
    wanted = {"LICENSE", "README.md", "man/tracelake.1", "man/tracelake-convert.1"}
    assert wanted | {f"completions/tracelake.{shell}" for shell in ("bash", "zsh", "fish")} <= names
    bill = json.loads((out / "tracelake-1.2.3.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["version"] == "1.2.3"
    found = {c["name"]: c["version"] for c in bill["components"]}
    required = re.findall(r"^\s+(\S+) (v\S+)$", (ROOT / "go.mod").read_text(), re.M)
    assert ("github.com/apache/arrow-go/v18", found["github.com/apache/arrow-go/v18"]) in required
    assert any("duckdb" in name for name in found)
