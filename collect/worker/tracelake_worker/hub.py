"""Fetches one model from the hub into the usual cache."""

import os
import threading
import time

from .errors import bad_request

REPORT_SECONDS = 0.5


def download(job, events):
    if not job.model_id:
        raise bad_request("model_id is missing")
    from .runner import require

    events.emit("phase", name="import")
    require("huggingface_hub", "download")
    from huggingface_hub import snapshot_download

    events.emit("phase", name="download")
    options = job.options
    meter = _Meter(events)
    path = snapshot_download(
        job.model_id,
        revision=job.revision,
        allow_patterns=options.get("allow_patterns"),
        ignore_patterns=options.get("ignore_patterns"),
        max_workers=int(options.get("max_workers", 4)),
        force_download=bool(options.get("force", False)),
        tqdm_class=meter.bar_class(),
    )
    meter.flush()
    files, size = _measure(path)
    name = os.path.basename(path)
    return {"path": os.path.abspath(path), "revision": name if len(name) == 40 else None, "files": files, "bytes": size}


def _measure(path):
    files = size = 0
    for directory, _, names in os.walk(path):
        for name in names:
            files += 1
            size += os.path.getsize(os.path.join(directory, name))
    return files, size


class _Meter:
    """Sums what the hub's progress bars say into progress events."""

    def __init__(self, events):
        self._events = events
        self._lock = threading.Lock()
        self._bars = {}
        self._last = 0.0

    def bar_class(self):
        from tqdm.auto import tqdm

        meter = self

        class Bar(tqdm):
            """Counts without drawing."""

            def __init__(self, *args, **kwargs):
                kwargs.pop("name", None)
                self.counts_bytes = kwargs.get("unit") == "B"
                kwargs["file"] = open(os.devnull, "w")  # noqa: SIM115
                super().__init__(*args, **kwargs)
                meter.seen(self)

            def update(self, n=1):
                shown = super().update(n)
                meter.seen(self)
                return shown

            def close(self):
                meter.seen(self)
                super().close()

        return Bar

    def seen(self, bar):
        if not getattr(bar, "counts_bytes", False):
            return
        with self._lock:
            self._bars[id(bar)] = (int(bar.n or 0), int(bar.total or 0))
            now = time.monotonic()
            if now - self._last < REPORT_SECONDS:
                return
            self._last = now
        self.flush()

    def flush(self):
        with self._lock:
            done = sum(n for n, _ in self._bars.values())
            total = sum(max(n, t) for n, t in self._bars.values())
        self._events.emit("progress", done=done, total=total, what="bytes")
