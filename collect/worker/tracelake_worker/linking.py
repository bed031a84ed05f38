"""Links the GPU work of a profile to the operators that asked for it.

An operator is known by its occurrence, never by its name or its sequence
number: nested operators and a forward with its backward share those.
GPU work finds its launch as tracelake's importer does.
"""

import bisect

# Times of old profilers are whole microseconds, rounded each for itself.
ROUNDING_NS = 1000


def link(ops, launches, gpu):
    """Sets parent of the operators, op of the launches, launch and op of the
    GPU events. The operators must be in order of their start, outer first."""
    nesting = Nesting(ops)
    for op in ops:
        op.parent = nesting.parent.get(op)
    ids = ExternalIds(ops)
    for launch in launches:
        named = ids.running(launch)
        launch.op = nesting.innermost(launch.pid, launch.tid, launch.start) or named
        if launch.op is not None:
            launch.op.launches += 1
    calls = Calls(launches)
    for event in gpu:
        event.launch = calls.of(event)
        event.op = event.launch.op if event.launch is not None else ids.asking(event)
        if event.op is not None:
            event.op.gpu.append(event)


class ExternalIds:
    """Operators by External id; 0 means none. Profilers of 2023 and 2024 write
    another number in its place, which may be the id of any operator: the time
    decides where it can, and an operator is believed only if it was running."""

    def __init__(self, ops):
        self._ops = {}
        self._right = self._wrong = 0
        for op in ops:
            if op.external_id:
                self._ops.setdefault(op.external_id, []).append(op)

    def running(self, launch):
        """The operator that a launch names, on whatever thread: runtime calls
        and operators count their threads differently in old traces."""
        named = [op for op in self._ops.get(launch.external_id, ()) if op.pid == launch.pid]
        found = [op for op in named if op.start - ROUNDING_NS <= launch.start <= op.end + ROUNDING_NS]
        if named:
            self._right += bool(found)
            self._wrong += not found
        return found[0] if len(found) == 1 else None

    def asking(self, event):
        """The operator that a GPU event names whose launch was not recorded."""
        found = self._ops.get(event.external_id, ())
        return found[0] if len(found) == 1 and self._wrong * 10 <= self._right else None


class Calls:
    """Which call launched which work: by correlation ID, of which the last call
    counts, and by External id where the work has none. Calls of several
    processes that share an ID are not guessed at."""

    def __init__(self, launches):
        self._correlated = {}
        self._fitting = {}
        self._named = {}
        contested = set()
        for launch in launches:
            before = self._correlated.get(launch.correlation) if launch.correlation else None
            if before is not None and before.pid != launch.pid:
                contested.add(launch.correlation)
            if launch.correlation:
                self._correlated[launch.correlation] = launch
            if launch.external_id:
                self._named.setdefault(launch.external_id, []).append(launch)
                self._fitting.setdefault((launch.external_id, launch.kind), []).append(launch)
        for correlation in contested:
            self._correlated[correlation] = None

    def of(self, event):
        if event.correlation:
            return self._correlated.get(event.correlation)
        if not event.external_id:
            return None
        found = self._fitting.get((event.external_id, event.kind)) or self._named.get(event.external_id, ())
        return found[0] if len(found) == 1 else None


class Nesting:
    """Which call runs inside which, per thread, by intervals."""

    def __init__(self, calls):
        self.parent = {}
        self._threads = {}
        stacks = {}
        for call in calls:  # in order of start, outer first
            key = (call.pid, call.tid)
            stack = stacks.setdefault(key, [])
            while stack and (stack[-1].end <= call.start or stack[-1].end < call.end):
                stack.pop()
            if stack:
                self.parent[call] = stack[-1]
            stack.append(call)
            self._threads.setdefault(key, []).append(call)
        self._starts = {k: [c.start for c in v] for k, v in self._threads.items()}

    def innermost(self, pid, tid, moment):
        key = (pid, tid)
        calls = self._threads.get(key)
        if not calls:
            return None
        i = bisect.bisect_right(self._starts[key], moment) - 1
        call = calls[i] if i >= 0 else None
        while call is not None and not call.start <= moment < call.end:
            call = self.parent.get(call)
        return call
