"""The prompt of "sql", typed into a real terminal, and statements from a pipe."""

import itertools
import os
import pty
import random
import re
import select
import signal
import subprocess
import time

import duckdb
import pytest
from conftest import ROOT

DEMO = ROOT / "testdata" / "demo"
PROMPT = "tracelake> "


@pytest.fixture(scope="module")
def lake(tracelake, tmp_path_factory):
    path = tmp_path_factory.mktemp("prompt") / "lake"
    tracelake("convert", DEMO, "-o", path, "-q", ok=(0, 3))
    return path


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, binary, *args, state, stdout=None):
        pid, self.fd = pty.fork()
        if pid == 0:
            if stdout is not None:
                os.dup2(os.open(stdout, os.O_WRONLY | os.O_CREAT), 1)
            os.environ["XDG_STATE_HOME"] = str(state)
            os.execv(binary, [str(binary), *map(str, args)])
        self.pid, self.seen = pid, ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, text, seconds=60):
        """What is shown before a text; the next call starts behind it."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:  # the program has ended
                raise AssertionError(f"it ended without {text!r}: {self.seen!r}") from None
        before, _, self.seen = self.seen.partition(text)
        return before

    def ask(self, line):
        """Types a line and returns what is shown until the next prompt."""
        self.type(line + "\r")
        return self.until(PROMPT)

    def exit_code(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 4096)
                except OSError:
                    time.sleep(0.05)
        raise AssertionError("it does not end")


@pytest.fixture
def terminal(binary, lake, tmp_path):
    t = Terminal(binary, "sql", lake, "--threads", "1", state=tmp_path)
    t.until(PROMPT)
    return t


def test_statements(terminal):
    assert "    42" in terminal.ask("SELECT 6 * 7 AS answer;")
    terminal.type("SELECT ';' AS a,\r")
    terminal.until("...> ")
    terminal.type("  2 AS b -- ; not here\r")
    terminal.until("...> ")
    shown = terminal.ask("; SELECT 3 AS c;")
    assert ";  2" in shown and shown.count("(1 row)") == 2
    # What one statement makes, the next one sees.
    terminal.ask("CREATE TEMP TABLE mine AS SELECT 5 AS five; SET VARIABLE run = 'x';")
    assert "   5  x" in terminal.ask("SELECT five, getvariable('run') AS run FROM mine;")
    # An error ends nothing.
    assert "error: " in terminal.ask("SELECT nonsense;")
    assert "error: " in terminal.ask("COPY traces TO '/tmp/x.csv';")
    terminal.type(".quit\r")
    assert terminal.exit_code() == 0


def test_commands(terminal):
    names = terminal.ask(".tables").split()
    assert {"traces", "gpu_events", "gpu_work"} <= set(names)
    assert "correlation" in terminal.ask(".schema launches")
    assert "error: " in terminal.ask(".schema nowhere")
    assert "busy_pct" in terminal.ask(".analyze devices")
    assert "Busiest kernels" in terminal.ask(".analyze")
    assert "Ctrl-C" in terminal.ask(".help")
    terminal.ask(".rows 2")
    shown = terminal.ask("SELECT * FROM range(5);")
    assert "(2 rows)" in shown and "the first 2 rows" in shown
    terminal.ask(".format csv")
    assert 'a,b\r\n1,"x,y"\r\n' in terminal.ask("SELECT 1 AS a, 'x,y' AS b;")
    assert "unknown command .what" in terminal.ask(".what")
    terminal.type("\x04")  # Ctrl-D
    assert terminal.exit_code() == 0


def test_interrupt(terminal):
    terminal.type("SELECT count(*) FROM range(10000000000000) AS a WHERE a.range % 7 = 3;\r")
    time.sleep(1)
    terminal.type("\x03")
    terminal.until("stopped")
    terminal.until(PROMPT)
    terminal.type("SELECT half,\r")
    terminal.until("...> ")
    terminal.type("typed\x03")  # gives up the statement
    terminal.until(PROMPT)
    assert "(1 row)" in terminal.ask("SELECT 1 AS still_here;")
    terminal.type("\x04")
    assert terminal.exit_code() == 0


def test_terminated_while_typing(terminal):
    terminal.type("SELECT ")
    terminal.until("SELECT ")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.exit_code() == 143


def test_editing_and_history(binary, lake, tmp_path):
    state = tmp_path / "state"
    t = Terminal(binary, "sql", lake, state=state)
    t.until(PROMPT)
    assert "13" in t.ask("SELECT 12 AS n;\x1b[D" + "\x1b[D" * 5 + "\x7f3")  # left six times, rub out the 2, a 3
    assert "(1 row)" in t.ask("SELECT count(*) AS traces FROM selected_tra\t;")
    t.type(".quit\r")
    assert t.exit_code() == 0
    file = state / "tracelake" / "sql_history"
    assert "FROM selected_traces;" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    t = Terminal(binary, "sql", lake, state=state)
    t.until(PROMPT)
    assert "(1 row)" in t.ask("\x1b[A\x1b[A")  # up twice: the line before .quit
    t.type("\x04")
    assert t.exit_code() == 0


def test_data_goes_to_stdout(binary, lake, tmp_path):
    out = tmp_path / "out.csv"
    t = Terminal(binary, "sql", lake, "--format", "csv", state=tmp_path, stdout=out)
    t.until(PROMPT)
    t.ask("SELECT 1 AS a;")
    t.type("\x04")
    assert t.exit_code() == 0
    assert out.read_text() == "a\n1\n"


def test_pipe(binary, lake):
    def run(text, *args):
        words = [str(binary), "sql", str(lake), "--format", "csv", *args]
        return subprocess.run(words, input=text, capture_output=True, text=True, timeout=120)

    p = run("SET VARIABLE n = 4;\nSELECT getvariable('n') + 1 AS five -- the last one\n")
    assert (p.returncode, p.stdout, p.stderr) == (0, "five\n5\n", "")
    p = run("")
    assert p.returncode == 2 and "standard input" in p.stderr
    p = run("SELECT nonsense")
    assert p.returncode == 1 and p.stdout == ""


def test_limits(tracelake, lake, tmp_path):
    """What does not fit into memory goes to the directory that is named."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    sort = "SELECT max(r) AS m FROM (SELECT row_number() OVER (ORDER BY hash(i)) AS r FROM range(5000000) AS t(i))"
    limits = ("--max-memory", "150MiB", "--threads", "1")
    p = tracelake("sql", lake, sort, "--format", "csv", *limits, "--temp-dir", scratch)
    assert p.stdout == "m\n5000000\n"
    assert list(scratch.iterdir()) == []
    p = tracelake("sql", lake, sort, *limits, "--temp-dir", tmp_path / "missing", ok=(2,))
    assert "--temp-dir" in p.stderr
    for command in (["analyze", "devices", lake], ["diff", lake, lake]):
        tracelake(*command, "--temp-dir", scratch, *limits)
        p = tracelake(*command, "--temp-dir", tmp_path / "missing", ok=(2,))
        assert "--temp-dir" in p.stderr


def test_documented(tracelake, lake):
    """docs/sql.md names every shared view and macro, and its examples work."""
    text = (ROOT / "docs" / "sql.md").read_text()
    shared = (ROOT / "schema" / "shared_views.sql").read_text()
    names = re.findall(r"^CREATE OR REPLACE (?:VIEW|MACRO) (\w+)", shared, re.M)
    assert len(names) > 10 and [n for n in names if f"`{n}" not in text] == []
    examples = re.findall(r"```sql\n(.*?)```", text, re.S)
    assert len(examples) >= 2
    con = duckdb.connect()
    con.execute((lake / "_tracelake" / "views.sql").read_text())
    for example in examples:
        rows = con.execute(example).fetchall()
        assert rows and len(tracelake("sql", lake, example, "--format", "csv").stdout.splitlines()) == len(rows) + 1


def test_interval_macros(lake):
    """Against sets of moments, in a DuckDB of the user's own."""
    con = duckdb.connect()
    con.execute((lake / "_tracelake" / "views.sql").read_text())
    con.execute("CREATE TABLE t (k VARCHAR, s BIGINT, e BIGINT)")
    rng = random.Random(5)
    for _ in range(40):
        con.execute("DELETE FROM t")
        sets = {"a": set(), "b": set()}
        for _ in range(rng.randint(1, 12)):
            k, s, length = rng.choice("ab"), rng.randint(0, 60), rng.randint(0, 9)
            con.execute("INSERT INTO t VALUES (?, ?, ?)", [k, s, s + length])
            sets[k] |= set(range(s, s + length))
        con.execute("INSERT INTO t VALUES ('a', NULL, 5), ('b', 5, NULL)")
        a, b, both, shared = con.execute("""
            SELECT coalesce(busy_ns(if(k = 'a', s, NULL), e), 0), coalesce(interval_union(if(k = 'b', s, NULL), e), []),
              busy_ns(s, e), overlap_ns(interval_union(if(k = 'a', s, NULL), e), interval_union(if(k = 'b', s, NULL), e))
            FROM t""").fetchone()
        assert (a, both, shared) == (len(sets["a"]), len(sets["a"] | sets["b"]), len(sets["a"] & sets["b"]))
        assert {x for i in b for x in range(i["start_ns"], i["end_ns"])} == sets["b"]
        assert all(x["end_ns"] < y["start_ns"] for x, y in itertools.pairwise(b))
    assert con.execute("SELECT busy_ns(s, e), interval_union(s, e) FROM t WHERE false").fetchone() == (0, [])
    busy = "SELECT trace_id, process, device, busy_ns(start_ns, end_ns) FROM gpu_work GROUP BY ALL ORDER BY ALL"
    exact = "SELECT trace_id, global_pid, ordinal, busy_ns FROM devices WHERE gpu_events > excluded_events ORDER BY ALL"
    assert con.execute(busy).fetchall() == con.execute(exact).fetchall() != []
