"""docs/quickstart.md and the README's worked example show what their commands print."""

import doctest
import re
import shlex
import subprocess

import pytest
from conftest import ROOT


@pytest.fixture
def here(binary, tmp_path, monkeypatch):
    """A directory in which the pages' commands find the program and the demo traces."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tracelake").symlink_to(binary.resolve())
    (tmp_path / "testdata").symlink_to(ROOT / "testdata")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(page, heading=""):
    """The console and Python sessions behind a heading, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text.partition(heading)[2].partition("\n## ")[0] if heading else text
    return re.findall(r"^```(console|pycon)\n(.*?)^```", section, re.S | re.M)


def commands(session):
    """Commands of a console session with the lines shown behind each."""
    for part in re.split(r"^\$ ", session, flags=re.M)[1:]:
        lines = part.rstrip("\n").split("\n")
        end = next(n for n in range(1, len(lines) + 1) if complete("\n".join(lines[:n])))
        shown = lines[end:]
        if shown and not shown[-1]:
            shown.pop()  # the empty line in front of the next command
        yield "\n".join(lines[:end]), shown


def complete(command):
    try:
        shlex.split(command)
    except ValueError:  # a quotation goes on in the next line
        return False
    return True


def check(session):
    compared = 0
    for command, shown in commands(session):
        p = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
        assert p.returncode == 0, f"{command}: {p.stderr[-2000:]}"
        if command.startswith("bin/tracelake convert"):  # which says times, on stderr
            assert p.stdout == ""
            assert "7 inputs: 7 ok" in p.stderr
            continue
        said = p.stderr.splitlines()
        assert [line for line in shown if line not in said] == p.stdout.splitlines(), command
        compared += len(p.stdout.splitlines())
    return compared


def check_python(session, scope):
    test = doctest.DocTestParser().get_doctest(session, scope, "quickstart", None, None)
    failed, attempted = doctest.DocTestRunner(verbose=False).run(test, clear_globs=False)
    assert attempted > 0
    assert failed == 0
    scope.update(test.globs)


def test_quickstart(here):
    sessions, compared, scope = blocks("docs/quickstart.md"), 0, {}
    for kind, session in sessions:
        if kind == "console":
            compared += check(session)
        else:
            check_python(session, scope)
    assert compared >= 20
    assert {kind for kind, _ in sessions} == {"console", "pycon"}
    assert (here / "report.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_worked_example(here):
    ((_, session),) = blocks("README.md", "## A worked example")
    assert check(session) >= 10
