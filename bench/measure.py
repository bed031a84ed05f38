"""Runs a command and measures what it took."""

import dataclasses
import os
import pathlib
import time


@dataclasses.dataclass
class Run:
    """One run of a command."""

    cpu_s: float  # user and system time
    wall_s: float
    rss_mib: float  # peak resident set
    status: int  # exit status; negative for a signal
    output: str  # last line of standard output and error


def end_of(log: pathlib.Path) -> str:
    """The end of a file. An answer can have gigabytes, and a child counts the
    peak memory of the process that starts it as its own."""
    with log.open("rb") as f:
        f.seek(max(0, log.stat().st_size - (64 << 10)))
        return f.read().decode(errors="replace")


def measure(command, log: pathlib.Path, env=None) -> Run:
    """Runs a command and waits for it; its output goes to the log file."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    command = [str(word) for word in command]
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, {**os.environ, **(env or {})}, file_actions=actions)
    # wait4 counts this child and the children that it waited for, and no other.
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    lines = end_of(log).strip().splitlines()
    return Run(
        cpu_s=usage.ru_utime + usage.ru_stime,
        wall_s=wall,
        rss_mib=usage.ru_maxrss / 1024,
        status=os.waitstatus_to_exitcode(status),
        output=lines[-1] if lines else "",
    )
