"""Graph replays, waits, collectives and stragglers against slow, obvious
computations over random traces of several ranks."""

import json
import random
import statistics
from collections import defaultdict

import pytest

SYNC = {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy", "cudaFree"}
US = 1000


class Rank:
    """A random trace of one rank; collectives says which there are in each iteration."""

    def __init__(self, seed, rank, ranks, collectives, with_seq):
        self.random = random.Random(f"{seed}-{rank}")
        self.rank, self.ranks, self.with_seq = rank, ranks, with_seq
        self.numbered = seed % 3 > 0  # HIP and older CUDA traces do not number graphs
        self.longer = 400 if seed == 3 else 0  # so that collectives overlap, as those without a sequence must
        self.events, self.work, self.replays, self.waits, self.ops, self.steps = [], [], [], [], [], []
        self.correlation, self.seq = 0, defaultdict(int)
        now = self.random.randint(0, 30)
        for number, todo in enumerate(collectives):
            start = now
            self.step = number
            todo = list(todo)
            for _ in range(self.random.randint(2, 5)):
                now = self.op(now, 0)
                if todo and self.random.random() < 0.5:
                    now = self.collective(now, *todo.pop(0))
            for one in todo:
                now = self.collective(now, *one)
            now += self.random.randint(1, 20)
            self.steps.append((start, now))
            self.add("user_annotation", f"ProfilerStep#{number}", start, now - start, 1, 1)
            now += self.random.randint(0, 3)

    def add(self, cat, name, ts, dur, pid, tid, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args})

    def op(self, at, depth):
        start, r = at, self.random
        at += r.randint(0, 2)
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if kind < 0.3 and depth < 2:
                at = self.op(at, depth + 1)
            elif kind < 0.5:
                at = self.wait(at)
            elif kind < 0.75:
                at = self.launch(at, "cudaGraphLaunch", r.randint(1, 5))
            else:
                at = self.launch(at, "cudaLaunchKernel", 1)
            at += r.randint(0, 4)
        end = at + r.randint(1, 3)
        name = f"aten::op{r.randint(0, 3)}"
        self.ops.append((start, end, depth, name))
        self.add("cpu_op", name, start, end - start, 1, 1)
        return self.wait(end) if r.random() < 0.3 else end

    def wait(self, at):
        r = self.random
        api = r.choice([*sorted(SYNC), "cudaEventQuery"])
        dur = r.randint(1, 30)
        self.correlation += 1
        self.add("cuda_runtime", api, at, dur, 1, 1, correlation=self.correlation)
        if api in SYNC:
            self.waits.append((api, at, dur))
        return at + dur

    def launch(self, at, api, count, name=None, stream=None, dur=None, **args):
        r = self.random
        self.correlation += 1
        took = r.randint(1, 8)
        self.add("cuda_runtime", api, at, took, 1, 1, correlation=self.correlation)
        graph = r.randint(1, 2) if api == "cudaGraphLaunch" else None
        replay = {"graph": graph, "took": took, "work": []}
        for _ in range(count):
            on = stream or r.choice([7, 7, 20])
            free = max((w["end"] for w in self.work if w["stream"] == on), default=0)
            start = max(free, at + r.randint(0, 10)) + r.randint(0, 6)
            length = r.randint(0, 25) if dur is None else dur
            work = {
                "name": name or r.choice(["gemm", "relu", "softmax"]),
                "start": start,
                "end": start + length,
                "stream": on,
                "step": self.step,
                "launched": at,
                "call": self.correlation,
                "graph": graph,
                **args,
            }
            self.work.append(work)
            replay["work"].append(work)
            more = {"graph id": graph} if graph and self.numbered else {}
            self.add(
                "kernel",
                work["name"],
                start,
                length,
                0,
                on,
                device=0,
                stream=on,
                correlation=self.correlation,
                **more,
                **args.get("comm", {}),
            )
        if graph:
            self.replays.append(replay)
        return at + took

    def collective(self, at, name, group, elements):
        self.seq[group] += 1
        comm = {
            "Collective name": name,
            "In msg nelems": elements,
            "Out msg nelems": elements,
            "dtype": "BFloat16",
            "Group size": self.ranks,
            "Process Group Name": group,
        }
        if self.with_seq:
            comm["Seq"] = self.seq[group]
        return self.launch(
            at,
            "cudaLaunchKernel",
            1,
            "ncclDevKernel_" + name,
            30 + int(group),
            comm=comm,
            seq=self.seq[group],
            dur=self.random.randint(1, 60) + self.longer,
        )

    def write(self, path):
        info = {"backend": "nccl", "rank": self.rank, "world_size": self.ranks}
        path.write_text(json.dumps({"baseTimeNanoseconds": 1_700_000_000_000_000_000, "distributedInfo": info, "traceEvents": self.events}))


class Job:
    def __init__(self, seed, directory, tracelake):
        r = random.Random(seed)
        count = r.randint(2, 4)
        names = ["allreduce", "_allgather_base", "reduce_scatter", "broadcast"]
        plan = [[(r.choice(names), r.choice("01"), r.choice([500, 4000])) for _ in range(r.randint(0, 3))] for _ in range(4)]
        self.ranks = [Rank(seed, i, count, plan, seed % 2 == 0) for i in range(count)]
        (directory / "job").mkdir()
        for one in self.ranks:
            one.write(directory / "job" / f"rank{one.rank}.json")
        tracelake("convert", directory / "job", "-o", directory / "lake", "-q")
        self.ask = lambda name: [
            json.loads(x) for x in tracelake("analyze", name, directory / "lake", "--format", "json").stdout.splitlines()
        ]


@pytest.fixture(scope="module", params=range(6))
def job(request, tmp_path_factory, tracelake):
    return Job(request.param, tmp_path_factory.mktemp(f"ranks{request.param}"), tracelake)


def covered(works):
    return {t for w in works for t in range(w["start"], w["end"])}


def test_graphs(job):
    want = []
    for rank in job.ranks:
        groups = defaultdict(list)
        for replay in rank.replays:
            groups[replay["graph"] if rank.numbered else None].append(replay)
        for graph, replays in groups.items():
            walls = [max(w["end"] for w in r["work"]) - min(w["start"] for w in r["work"]) for r in replays]
            busy = [len(covered(r["work"])) for r in replays]
            want.append(
                {
                    "rank": rank.rank,
                    "graph_id": graph,
                    "replays": len(replays),
                    "events": pytest.approx(statistics.mean(len(r["work"]) for r in replays), abs=6e-3),
                    "wall_us": pytest.approx(statistics.mean(walls), abs=1e-3),
                    "busy_us": pytest.approx(statistics.mean(busy), abs=1e-3),
                    "gaps_us": pytest.approx(statistics.mean(w - b for w, b in zip(walls, busy, strict=True)), abs=1e-3),
                    "min_wall_us": min(walls),
                    "max_wall_us": max(walls),
                    "launch_us": pytest.approx(statistics.mean(r["took"] for r in replays), abs=1e-3),
                }
            )
    got = [{k: r[k] for k in want[0]} for r in job.ask("graphs")]
    key = lambda r: (r["rank"], r["graph_id"] or 0)  # noqa: E731
    assert sorted(got, key=key) == sorted(want, key=key)


def test_sync(job):
    want = defaultdict(list)
    for rank in job.ranks:
        for api, at, dur in rank.waits:
            around = [o for o in rank.ops if o[0] <= at < o[1]]
            op = max(around, key=lambda o: o[2])[3] if around else None
            want[rank.rank, api, op].append(dur)
    rows = job.ask("sync")
    assert {(r["rank"], r["api"], r["op"]): (r["calls"], round(r["blocked_ms"] * 1000), r["max_us"]) for r in rows} == {
        k: (len(v), sum(v), max(v)) for k, v in want.items()
    }
    for r in rows:
        rank = job.ranks[r["rank"]]
        wall = max(e["ts"] + e["dur"] for e in rank.events) - min(e["ts"] for e in rank.events)
        assert r["share_pct"] == pytest.approx(100 * sum(want[r["rank"], r["api"], r["op"]]) / wall, abs=0.0051)


def test_idle(job):
    """Reasons of the gaps of devices and streams, graph launches among them."""
    want = defaultdict(int)
    for rank in job.ranks:
        for stream in {None, *(w["stream"] for w in rank.work)}:
            # The sort is stable: of two that start at once the first in the file comes first.
            mine = sorted((w for w in rank.work if stream in (None, w["stream"])), key=lambda w: w["start"])
            others = covered(w for w in rank.work if w["stream"] != stream) if stream else set()
            end = before = None
            for w in mine:
                if end is not None and w["start"] > end:
                    if w["graph"] and (w["graph"], w["call"]) == (before["graph"], before["call"]):
                        reason = "graph"
                    elif w["launched"] > end:
                        reason = "host"
                    elif stream and all(t in others for t in range(end, w["start"])):
                        reason = "other_stream"
                    else:
                        reason = "short" if w["start"] - end < 30 else "other"
                    want[rank.rank, stream, reason] += (w["start"] - end) * US
                end = max(end or 0, w["end"])
                before = w
    assert {(r["rank"], r["stream"], r["reason"]): r["idle_ns"] for r in job.ask("idle")} == dict(want)


def test_queue(job):
    for r in job.ask("queue"):
        calls = {w["call"]: w for w in sorted(job.ranks[r["rank"]].work, key=lambda w: -w["start"]) if w["stream"] == r["stream"]}
        waits = [(w["launched"], w["start"]) for w in calls.values()]
        lengths = [sum(a <= t < b for a, b in waits) for t in range(min(a for a, _ in waits), max(b for _, b in waits))]
        assert (r["launches"], r["max"], r["early"]) == (len(waits), max(lengths, default=0), 0)
        if not lengths:
            assert r["mean"] is None
            continue
        assert r["mean"] == pytest.approx(statistics.mean(lengths), abs=6e-4)
        assert r["empty_pct"] == pytest.approx(100 * lengths.count(0) / len(lengths), abs=6e-3)


def test_collectives(job):
    matched = defaultdict(list)
    for rank in job.ranks:
        order = defaultdict(int)
        for w in sorted((w for w in rank.work if "comm" in w), key=lambda w: w["start"]):
            comm = w["comm"]
            of = comm["Collective name"], comm["Process Group Name"]
            order[of] += 1
            number = w["seq"] if rank.with_seq else order[of]
            matched[(*of, comm["In msg nelems"] * 2), number].append(w)
    sizes, apart = defaultdict(list), defaultdict(list)
    for (key, _), works in matched.items():
        assert len(works) == len(job.ranks)
        last = max(w["start"] for w in works)
        apart[key[:2]].append(last > min(w["end"] for w in works))
        transfer = max(w["end"] for w in works) - last
        durations = [w["end"] - w["start"] for w in works]
        sizes[key].append((statistics.mean(durations), last - min(w["start"] for w in works), transfer if transfer > 0 else min(durations)))
    n = len(job.ranks)
    got = {(r["collective"], r["group"], r["bytes"]): r for r in job.ask("collectives")}
    assert set(got) == set(sizes)
    for (name, group, size), rows in sizes.items():
        r = got[name, group, size]
        mean, wait, transfer = (statistics.mean(column) for column in zip(*rows, strict=True))
        factor = {"allreduce": 2 * (n - 1) / n, "broadcast": 1}.get(name, (n - 1) / n)
        assert (r["count"], r["ranks"], r["group_size"]) == (len(rows), n, n)
        assert r["mean_us"] == pytest.approx(mean, abs=6e-4)
        if name != "broadcast" and not job.ranks[0].with_seq and statistics.mean(apart[name, group]) > 0.5:
            assert [r[k] for k in ("wait_us", "transfer_us", "alg_gb_per_s", "bus_gb_per_s")] == [None] * 4
            assert r["matched_by"] == "cannot be matched"
            continue
        assert [r["wait_us"], r["transfer_us"]] == pytest.approx([wait, transfer], abs=6e-4)
        assert [r["alg_gb_per_s"], r["bus_gb_per_s"]] == pytest.approx([size / transfer / US, factor * size / transfer / US], abs=6e-4)
        assert r["matched_by"] == ("sequence" if job.ranks[0].with_seq else "order")


def test_stragglers(job):
    rows = {r["iteration"]: r for r in job.ask("stragglers")}
    assert set(rows) == {"0", "1", "2", "3"}
    for step in range(4):
        facts = []
        for rank in job.ranks:
            works = [w for w in rank.work if w["step"] == step]
            start, end = rank.steps[step]
            kernels = defaultdict(int)
            for w in works:
                kernels[w["name"]] += w["end"] - w["start"]
            talk = sum(v for k, v in kernels.items() if k.startswith("nccl"))
            facts.append(
                {
                    "rank": rank.rank,
                    "wall": end - start,
                    "talk": talk,
                    "compute": sum(kernels.values()) - talk,
                    "gap": max(end - start - len(covered(works)), 0),
                    "kernels": {k: v for k, v in kernels.items() if not k.startswith("nccl")},
                }
            )
        slow = min(facts, key=lambda f: (f["talk"], -f["wall"], f["rank"]))
        median = {k: statistics.median(f[k] for f in facts) for k in ("wall", "talk", "compute", "gap")}
        r = rows[str(step)]
        assert (r["straggler"], r["ranks"]) == (slow["rank"], len(facts))
        got = [r[k] for k in ("wall_ms", "median_wall_ms", "extra_compute_ms", "less_communication_ms", "extra_gap_ms")]
        want = [
            slow["wall"],
            median["wall"],
            slow["compute"] - median["compute"],
            median["talk"] - slow["talk"],
            slow["gap"] - median["gap"],
        ]
        assert got == pytest.approx([v / US for v in want], abs=6e-4)
        excess = {k: v - statistics.mean(f["kernels"].get(k, 0) for f in facts) for k, v in slow["kernels"].items()}
        more = max(excess.values(), default=0)
        if r["does_instead"] is None:
            assert more <= 1e-9
        else:
            assert excess[r["does_instead"]] == pytest.approx(more) and more > 0


def test_kernel_sequences(job):
    want = defaultdict(list)
    for rank in job.ranks:
        for stream in {w["stream"] for w in rank.work}:
            mine = [w for w in rank.work if w["stream"] == stream]
            mine.sort(key=lambda w: w["start"])
            for some in zip(mine, mine[1:], mine[2:], strict=False):
                took = sum(w["end"] - w["start"] for w in some)
                want[" → ".join(w["name"] for w in some)].append((took, max(w["end"] for w in some) - some[0]["start"]))
    rows = job.ask("kernel-sequences")
    common = {k: v for k, v in want.items() if len(v) > 1}
    assert len(rows) == min(len(common), 25)
    for r in rows:
        took, wall = zip(*common[r["sequence"]], strict=True)
        assert r["count"] == len(took)
        assert [r["kernel_ms"], r["wall_ms"]] == pytest.approx([sum(took) / US, sum(wall) / US], abs=6e-4)
        assert r["gap_us"] == pytest.approx(statistics.mean(w - t for t, w in zip(took, wall, strict=True)), abs=6e-4)
