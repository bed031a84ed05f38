"""Reads a profiler's Chrome trace and links its GPU work to operators.

An operator is known by its occurrence, never by its name or its sequence
number: nested operators and a forward with its backward share those.
"""

import bisect
import decimal
import gzip
import json
from dataclasses import dataclass, field

CHUNK = 4 << 20
# No single event is near this long; a file without an end to one is damaged.
MAX_EVENT_CHARS = 256 << 20

OP_CATEGORIES = ("cpu_op", "Operator", "operator")
LAUNCH_CATEGORIES = (
    "cuda_runtime",
    "cuda_driver",
    "hip_runtime",
    "hip_driver",
    "xpu_runtime",
    "privateuse1_runtime",
    "privateuse1_driver",
    "runtime",
    "driver",
)
KERNEL_CATEGORIES = ("kernel", "Kernel")
MEMCPY_CATEGORIES = ("gpu_memcpy", "Memcpy")
MEMSET_CATEGORIES = ("gpu_memset", "Memset")
GPU_CATEGORIES = KERNEL_CATEGORIES + MEMCPY_CATEGORIES + MEMSET_CATEGORIES
ANNOTATION_CATEGORY = "user_annotation"


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
    return int(decimal.Decimal(value) * 1000) if value is not None else 0


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
    correlation: int
    op: Op | None = None


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
    link(profile, phases)
    return profile


def _take(profile, event):
    category = event.get("cat", "")
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    start = nanoseconds(event.get("ts"))
    duration = nanoseconds(event.get("dur"))
    name = str(event.get("name", ""))
    pid, tid = event.get("pid"), event.get("tid")
    external = integer(args.get("External id", args.get("external id")))
    if category in OP_CATEGORIES:
        profile.ops.append(Op(len(profile.ops), name, category, pid, tid, start, start + duration, args))
    elif category in LAUNCH_CATEGORIES:
        correlation = integer(args.get("correlation"))
        if correlation is not None:
            profile.launches.append(Launch(name, category, pid, tid, start, external, correlation))
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


def link(profile, phases=()):
    profile.ops.sort(key=lambda o: (o.start, -o.end, o.index))
    for i, op in enumerate(profile.ops):
        op.index = i
    threads = Nesting(profile.ops)
    for op in profile.ops:
        op.parent = threads.parent.get(op)
    _phases(profile, phases)
    _python(profile)
    by_external = {}
    for op in profile.ops:
        # Ids of 0 mean none. An id belongs to one run of one operator.
        if op.external_id:
            by_external.setdefault((op.pid, op.external_id), op)
    by_correlation = {}
    for launch in profile.launches:
        launch.op = by_external.get((launch.pid, launch.external_id)) if launch.external_id else None
        if launch.op is None:
            launch.op = threads.innermost(launch.pid, launch.tid, launch.start)
        if launch.op is not None:
            launch.op.launches += 1
        by_correlation.setdefault(launch.correlation, []).append(launch)
    for gpu in profile.gpu:
        gpu.launch = _launch_of(gpu, by_correlation.get(gpu.correlation, ())) if gpu.correlation else None
        if gpu.launch is not None:
            gpu.op = gpu.launch.op
        elif gpu.external_id:
            # A launch outside of the window: the id alone says who asked.
            found = {by_external[k] for k in by_external if k[1] == gpu.external_id} if len({o.pid for o in profile.ops}) > 1 else None
            if found is None and profile.ops:
                gpu.op = by_external.get((profile.ops[0].pid, gpu.external_id))
            elif found and len(found) == 1:
                gpu.op = next(iter(found))
        if gpu.op is not None:
            gpu.op.gpu.append(gpu)


def _launch_of(gpu, launches):
    """Correlations are counted per process. Of several candidates the one with
    the GPU event's External id is meant, else the last one before it."""
    if len(launches) <= 1:
        return launches[0] if launches else None
    same = [x for x in launches if gpu.external_id and x.external_id == gpu.external_id]
    candidates = same or launches
    before = [x for x in candidates if x.start <= gpu.start]
    return max(before or candidates, key=lambda x: x.start)


class Nesting:
    """Which operator runs inside which, per thread, by intervals."""

    def __init__(self, ops):
        self.parent = {}
        self._threads = {}
        stacks = {}
        for op in ops:  # in order of start, outer first
            key = (op.pid, op.tid)
            stack = stacks.setdefault(key, [])
            while stack and stack[-1].end < op.end:
                stack.pop()
            if stack and stack[-1].end > op.start:
                self.parent[op] = stack[-1]
            stack.append(op)
            self._threads.setdefault(key, []).append(op)
        self._starts = {k: [o.start for o in v] for k, v in self._threads.items()}

    def innermost(self, pid, tid, moment):
        key = (pid, tid)
        ops = self._threads.get(key)
        if not ops:
            return None
        i = bisect.bisect_right(self._starts[key], moment) - 1
        op = ops[i] if i >= 0 else None
        while op is not None and not op.start <= moment <= op.end:
            op = self.parent.get(op)
        return op


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
