"""The channel to the supervisor: one JSON object a line on an inherited descriptor.

Without TRACELAKE_EVENTS_FD the lines go to stdout, for a person. Either way
descriptor 1 is pointed at stderr afterwards, so that no library's print can
land between two lines.
"""

import json
import os
import sys
import threading

FD_VARIABLE = "TRACELAKE_EVENTS_FD"


class Events:
    def __init__(self, environ=None):
        environ = os.environ if environ is None else environ
        text = environ.pop(FD_VARIABLE, None)
        if text:
            self._fd = int(text)
            os.fstat(self._fd)  # a descriptor that is not open is told at once
        else:
            self._fd = os.dup(1)
        os.set_inheritable(self._fd, False)
        sys.stdout.flush()
        os.dup2(2, 1)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        # A forked child shares the descriptor; it must neither write to it
        # nor keep it open after the parent has gone.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self):
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def emit(self, event, **fields):
        """Writes one line; true when it went out whole."""
        if self._fd is None or os.getpid() != self._pid:
            return False
        line = json.dumps({"event": event, **fields}, separators=(",", ":"), default=str, allow_nan=False)
        return self.write(line)

    def write(self, line):
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        with self._lock:
            try:
                while data and self._fd is not None:
                    data = data[os.write(self._fd, data) :]
            except OSError as error:
                print(f"events: the supervisor does not read any more: {error}", file=sys.stderr)
                self._fd = None
        return not data

    def start_heartbeat(self, seconds):
        thread = threading.Thread(target=self._beat, args=(max(float(seconds), 0.05),), name="heartbeat", daemon=True)
        thread.start()

    def stop_heartbeat(self):
        self._stop.set()

    def _beat(self, seconds):
        while not self._stop.wait(seconds):
            if not self.emit("heartbeat", rss_bytes=rss_bytes()):
                return


def rss_bytes():
    """Resident memory of this process, 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def finite(value):
    """value with every non-finite number as text: JSON has no NaN."""
    if isinstance(value, float):
        return value if value - value == 0 else repr(value)
    if isinstance(value, dict):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    return value
