"""Reads a profiler's Chrome trace: operators, launches, GPU work, annotations."""

import bisect
import decimal
import gzip
import json
from dataclasses import dataclass, field

from .linking import Nesting, link

CHUNK = 4 << 20
# No single event is near this long; a file without an end to one is damaged.
MAX_EVENT_CHARS = 256 << 20

OP_CATEGORIES = ("cpu_op", "Operator", "operator")
KERNEL_CATEGORIES = ("kernel", "Kernel")
MEMCPY_CATEGORIES = ("gpu_memcpy", "Memcpy")
MEMSET_CATEGORIES = ("gpu_memset", "Memset")
GPU_CATEGORIES = KERNEL_CATEGORIES + MEMCPY_CATEGORIES + MEMSET_CATEGORIES
ANNOTATION_CATEGORY = "user_annotation"


def is_launch(category):
    """Calls of any vendor's runtime or driver; Runtime is its name of 2021."""
    return category.endswith(("_runtime", "_driver")) or category in ("Runtime", "Driver")


def events(path):
    """The complete events of a trace file, one at a time, plain or gzip."""
    with open(path, "rb") as f:
        zipped = f.read(2) == b"\x1f\x8b"
    opener = gzip.open if zipped else open
    # Times have three decimals on a large base: a float would round them.
    decoder = json.JSONDecoder(parse_float=decimal.Decimal)
    with opener(path, "rt", encoding="utf-8", errors="replace") as f:
        buffer = _to_events(f, path)
        position = 0
        while True:
            while position < len(buffer) and buffer[position] in " \t\r\n,":
                position += 1
            if position < len(buffer) and buffer[position] == "]":
                return
            try:
                event, position = decoder.raw_decode(buffer, position)
            except ValueError as error:
                more = f.read(CHUNK)
                if not more:
                    raise ValueError(f"{path}: ends in the middle of an event") from error
                buffer = buffer[position:] + more
                position = 0
                if len(buffer) > MAX_EVENT_CHARS:
                    raise ValueError(f"{path}: an event longer than {MAX_EVENT_CHARS} characters") from error
                continue
            if isinstance(event, dict):
                yield event
            if position > CHUNK:
                buffer = buffer[position:]
                position = 0


def _to_events(f, path):
    """Text from behind the bracket that opens the events."""
    buffer = f.read(CHUNK)
    if buffer.lstrip().startswith("["):
        return buffer.lstrip()[1:]
    key = '"traceEvents"'
    while True:
        found = buffer.find(key)
        if found >= 0:
            bracket = buffer.find("[", found)
            if bracket >= 0:
                return buffer[bracket + 1 :]
        more = f.read(CHUNK)
        if not more or len(buffer) > MAX_EVENT_CHARS:
            raise ValueError(f"{path}: not a Kineto trace: it has no traceEvents")
        buffer += more


def nanoseconds(value):
    """Microseconds with decimals as whole nanoseconds."""
    return int((decimal.Decimal(value) * 1000).to_integral_value()) if value is not None else 0


def integer(value):
    """An id, which some writers give as text."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


@dataclass(eq=False)
class Op:
    """One run of an operator."""

    index: int
    name: str
    category: str
    pid: object
    tid: object
    start: int
    end: int
    args: dict
    parent: "Op | None" = None
    phase: str | None = None
    stack: list | None = None
    module: str | None = None
    launches: int = 0
    gpu: list = field(default_factory=list)

    @property
    def external_id(self):
        return integer(self.args.get("External id", self.args.get("external id")))

    @property
    def sequence(self):
        return integer(self.args.get("Sequence number"))

    @property
    def record_id(self):
        return integer(self.args.get("Record function id"))


@dataclass(eq=False)
class Launch:
    name: str
    category: str
    pid: object
    tid: object
    start: int
    external_id: int | None
    correlation: int | None
    op: Op | None = None

    @property
    def kind(self):
        """Kind of work that it starts, by its name; None for other calls."""
        name = self.name.lower()
        return "memcpy" if "memcpy" in name else "memset" if "memset" in name else "kernel" if "launch" in name else None


@dataclass(eq=False)
class GpuEvent:
    name: str
    category: str
    device: object
    stream: object
    start: int
    duration: int
    correlation: int | None
    external_id: int | None
    launch: Launch | None = None
    op: Op | None = None

    @property
    def kind(self):
        if self.category in MEMCPY_CATEGORIES:
            return "memcpy"
        return "memset" if self.category in MEMSET_CATEGORIES else "kernel"


class Profile:
    """Operators, launches and GPU events of one trace, linked."""

    def __init__(self):
        self.ops = []
        self.launches = []
        self.gpu = []
        self.annotations = []
        self.annotation_records = {}
        self.python = []
        self.python_names = {}

    @property
    def unattributed(self):
        return [g for g in self.gpu if g.op is None]


def load(path, phases=()):
    """Reads and links a trace. phases says which annotations mark parts of a
    step, as names or as a function from a name to the phase; an operator gets
    the one that it ran in."""
    profile = Profile()
    for event in events(path):
        if event.get("ph") == "X":
            _take(profile, event)
    profile.ops.sort(key=lambda o: (o.start, -o.end, o.index))
    for i, op in enumerate(profile.ops):
        op.index = i
    link(profile.ops, profile.launches, profile.gpu)
    _phases(profile, phases)
    _python(profile)
    return profile


def _take(profile, event):
    category = str(event.get("cat", ""))
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    start = nanoseconds(event.get("ts"))
    duration = nanoseconds(event.get("dur"))
    name = str(event.get("name", ""))
    pid, tid = event.get("pid"), event.get("tid")
    external = integer(args.get("External id", args.get("external id")))
    if category in OP_CATEGORIES:
        profile.ops.append(Op(len(profile.ops), name, category, pid, tid, start, start + duration, args))
    elif is_launch(category):
        profile.launches.append(Launch(name, category, pid, tid, start, external, integer(args.get("correlation"))))
    elif category in GPU_CATEGORIES:
        device = args.get("device", pid)
        stream = args.get("stream", tid)
        correlation = integer(args.get("correlation"))
        profile.gpu.append(GpuEvent(name, category, device, stream, start, duration, correlation, external))
    elif category == ANNOTATION_CATEGORY:
        profile.annotations.append((start, start + duration, name))
        record = integer(args.get("Record function id"))
        if record:
            profile.annotation_records[record] = name
    elif category == "python_function":
        identity = integer(args.get("Python id"))
        profile.python.append((pid, tid, start, start + duration, name, identity, integer(args.get("Python parent id"))))


def _phases(profile, phases):
    """Backward may run on threads of autograd's own, so a phase is a stretch of
    time, not of one thread."""
    phase_of = phases if callable(phases) else lambda name: name if name in phases else None
    spans = sorted((s, e, phase_of(n)) for s, e, n in profile.annotations if phase_of(n))
    starts = [s for s, _, _ in spans]
    for op in profile.ops:
        i = bisect.bisect_right(starts, op.start) - 1
        if i >= 0 and op.start < spans[i][1]:
            op.phase = spans[i][2]


MODULE_PREFIX = "nn.Module: "
STACK_FRAMES = 32


def _python(profile):
    """Gives operators their Python call stack, innermost first, and the module
    that they ran in, from the profiler's own Python events."""
    if not profile.python:
        return
    frames = [Op(i, n, "python_function", p, t, s, e, {}) for i, (p, t, s, e, n, _, _) in enumerate(profile.python)]
    frames.sort(key=lambda o: (o.start, -o.end, o.index))
    nesting = Nesting(frames)
    for op in profile.ops:
        frame = nesting.innermost(op.pid, op.tid, op.start)
        stack, modules = [], []
        while frame is not None:
            if frame.name.startswith(MODULE_PREFIX):
                modules.append(frame.name.removeprefix(MODULE_PREFIX))
            if len(stack) < STACK_FRAMES:
                stack.append(frame.name)
            frame = nesting.parent.get(frame)
        op.stack = stack or None
        op.module = "/".join(reversed(modules)) or None
