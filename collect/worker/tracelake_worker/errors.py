"""What went wrong, in the classes that the supervisor acts on."""

import errno
import sys
import traceback

CLASSES = (
    "oom_device",
    "oom_host",
    "unsupported",
    "missing_library",
    "model",
    "tracer",
    "bad_request",
    "gated",
    "not_found",
    "network",
    "incomplete",
)

MESSAGE_MAX = 600
TRACEBACK_MAX = 16_000


class WorkerError(Exception):
    """A failure whose class is known where it is raised."""

    def __init__(self, error_class, message):
        assert error_class in CLASSES, error_class
        super().__init__(message)
        self.error_class = error_class


def bad_request(message):
    return WorkerError("bad_request", message)


def unsupported(message):
    return WorkerError("unsupported", message)


def chain(error):
    """error, then what caused it, each once."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def describe(error, phase=""):
    """The error object of a result line."""
    text = " ".join(str(error).split()) or type(error).__name__
    trace = "".join(traceback.format_exception(error))
    return {
        "class": classify(error, phase),
        "type": type(error).__name__,
        "message": text[:MESSAGE_MAX],
        "traceback": trace[-TRACEBACK_MAX:],
    }


# The class of an error that nothing tells more about, by where it happened.
BY_PHASE = {"import": "missing_library", "load_model": "model", "inputs": "model", "download": "network", "check": "model"}


def classify(error, phase=""):
    links = list(chain(error))
    for rule in (_own, _memory, _hub, _library, _network):
        for link in links:
            found = rule(link)
            if found:
                return found
    if isinstance(error, NotImplementedError):
        return "unsupported"
    return BY_PHASE.get(phase, "tracer")


def _own(error):
    return getattr(error, "error_class", None) if isinstance(error, WorkerError) else None


def _memory(error):
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return "oom_host"
    torch = sys.modules.get("torch")
    device_oom = getattr(torch, "OutOfMemoryError", None) or getattr(getattr(torch, "cuda", None), "OutOfMemoryError", None)
    if device_oom is not None and isinstance(error, device_oom):
        return "oom_device"
    if not isinstance(error, (RuntimeError, ValueError)):
        return None
    text = str(error).lower()
    if "defaultcpuallocator" in text or "can't allocate memory" in text or "cannot allocate memory" in text:
        return "oom_host"
    # vLLM refuses to start when what is left on the device cannot hold a cache.
    if "out of memory" in text or "no available memory for the cache blocks" in text or "free memory on device" in text:
        return "oom_device"
    return None


def _hub(error):
    """huggingface_hub's types. A gated repository is a kind of missing one
    there, and both answer 401, so the gated ones are asked for first."""
    hub = sys.modules.get("huggingface_hub.errors")
    if hub is None:
        return None

    def is_a(*names):
        return any(isinstance(error, cls) for cls in (getattr(hub, n, None) for n in names) if cls is not None)

    if is_a("GatedRepoError"):
        return "gated"
    if is_a("DisabledRepoError"):
        return "gated"
    if is_a("RepositoryNotFoundError", "RevisionNotFoundError", "RemoteEntryNotFoundError", "HFValidationError"):
        return "not_found"
    if is_a("IncompleteSnapshotError", "CachedRepoTreeNotFoundError", "CorruptedCacheException"):
        return "incomplete"
    if is_a("LocalEntryNotFoundError"):
        # With a cause the hub could not be reached; without one it was not asked.
        return None if error.__cause__ is not None else "incomplete"
    if is_a("FileMetadataError", "OfflineModeIsEnabled", "XetDownloadError"):
        return "network"
    if is_a("HfHubHTTPError"):
        status = getattr(getattr(error, "response", None), "status_code", None)
        return {401: "gated", 403: "gated", 404: "not_found"}.get(status, "network")
    return None


def _library(error):
    if isinstance(error, ModuleNotFoundError) or (isinstance(error, ImportError) and not isinstance(error, OSError)):
        return "missing_library"
    return None


def _network(error):
    if isinstance(error, (ConnectionError, TimeoutError)):
        return "network"
    module = type(error).__module__.split(".")[0]
    if module in ("httpx", "httpcore", "httpx2", "httpcore2", "requests", "urllib3"):
        return "network"
    if isinstance(error, OSError):
        text = str(error).lower()
        if "consistency check" in text or "does not appear to have a file named" in text or "no file named" in text:
            return "incomplete"
    return None
