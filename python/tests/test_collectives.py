"""Collectives that belong together are told from those that do not: by hand,
over random runs whose true matches are known, and over a real one."""

import json
import random
import statistics
from collections import defaultdict

import pytest

NAME = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SHORT = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def kernels(path, rank, world, list_, second=0):
    """A trace of kernels: (start, end, launched here, name, arguments), times in µs."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 1, "pid": 1, "tid": 1, "args": {}}]
    for n, (start, end, launched, name, args) in enumerate(list_, 1):
        if launched:
            call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
            events.append({"ph": "X", "ts": start, "dur": 1, "args": {"correlation": n}, **call})
        args = {"device": 0, "stream": 7, "correlation": n, **args}
        events.append({"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": end - start, "pid": 0, "tid": 7, "args": args})
    info = {"backend": "nccl", "rank": rank, "world_size": world}
    base = 1_700_000_000_000_000_000 + second * 10**9
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"baseTimeNanoseconds": base, "distributedInfo": info, "traceEvents": events}))


def answer(tracelake, directory):
    tracelake("convert", directory / "job", "-o", directory / "lake", "-q")
    return [json.loads(x) for x in tracelake("analyze", "collectives", directory / "lake", "--format", "json").stdout.splitlines()]


def figures(row):
    return {k: row[k] for k in ("collective", "group", "ranks", "count", "mean_us", "wait_us", "transfer_us", "matched_by")}


def one(start, end, launched=True, name=NAME, **args):
    return start, end, launched, name, args


def test_left_over_from_before(tracelake, tmp_path):
    """Rank 1 ends a collective that was launched before its profile began."""
    kernels(tmp_path / "job" / "0.json", 0, 2, [one(100, 200), one(300, 400)])
    kernels(tmp_path / "job" / "1.json", 1, 2, [one(10, 30, launched=False), one(120, 200), one(310, 410)])
    (row,) = answer(tracelake, tmp_path)
    want = {"collective": SHORT, "group": "", "ranks": 2, "count": 2, "mean_us": 95, "wait_us": 15, "transfer_us": 90}
    assert figures(row) == {**want, "matched_by": "order"}


@pytest.mark.parametrize(
    "of_rank_1",
    [
        [one(120, 200)],  # the second is missing, or the first
        [one(310, 400), one(500, 600)],  # as many, one later
    ],
)
def test_cannot_be_matched(tracelake, tmp_path, of_rank_1):
    kernels(tmp_path / "job" / "0.json", 0, 2, [one(100, 200), one(300, 400)])
    kernels(tmp_path / "job" / "1.json", 1, 2, of_rank_1)
    (row,) = answer(tracelake, tmp_path)
    assert (row["count"], row["wait_us"], row["transfer_us"], row["matched_by"]) == (2, None, None, "cannot be matched")


def test_the_root_of_a_broadcast_may_be_gone(tracelake, tmp_path):
    name = "ncclDevKernel_Broadcast_RING_LL"
    kernels(tmp_path / "job" / "0.json", 0, 2, [one(100, 110, name=name)])
    kernels(tmp_path / "job" / "1.json", 1, 2, [one(150, 160, name=name)])
    (row,) = answer(tracelake, tmp_path)
    assert (row["wait_us"], row["transfer_us"], row["matched_by"]) == (50, 10, "order")


def test_kernels_of_one_short_name(tracelake, tmp_path):
    """They are numbered together, as they are in one row."""
    names = [f"void rcclGenericKernel<{n}, false>(ncclDevComm*, unsigned long, ncclWork*)" for n in (1, 2)]
    for rank in range(2):
        list_ = [one(1000 * i + 100 + 10 * rank, 1000 * i + 300, name=name) for i, name in enumerate(names)]
        kernels(tmp_path / "job" / f"{rank}.json", rank, 2, list_)
    (row,) = answer(tracelake, tmp_path)
    assert (row["collective"], row["count"], row["wait_us"], row["transfer_us"]) == ("rcclGenericKernel", 2, 10, 190)


@pytest.mark.parametrize(("windows_of_rank_1", "restarted"), [([0, 1], False), ([0, 1], True), ([1], False)])
def test_sequences_over_windows(tracelake, tmp_path, windows_of_rank_1, restarted):
    """A sequence that goes on is matched where a window is missing, too; one that starts again, window by window."""
    for rank, windows in enumerate([[0, 1], windows_of_rank_1]):
        for w in windows:
            first = 1 if restarted else 1 + 2 * w
            list_ = [
                one(1000 * i + 10 * rank, 1000 * i + 100, **{"Collective name": "allreduce", "Process Group Name": "0", "Seq": first + i})
                for i in range(2)
            ]
            kernels(tmp_path / "job" / f"{rank}-{w}.json", rank, 2, list_, 10 * w)
    (row,) = answer(tracelake, tmp_path)
    assert (row["ranks"], row["count"], row["wait_us"]) == (2, 4, 10)  # the wait is that of those that both have


@pytest.mark.parametrize("seed", range(12))
def test_random(tracelake, tmp_path, seed):
    """Sibling groups of one name, several windows, and kernels that were launched before the profile began."""
    r = random.Random(seed)
    groups = r.choice([[[0, 1]], [[0, 1], [2, 3]], [[0, 1, 2]], [[0, 1, 2], [3, 4, 5]]])
    world = sum(map(len, groups))
    with_seq, windows = r.random() < 0.3, r.randint(1, 3)
    want, seq = defaultdict(list), defaultdict(int)
    left_over = [[r.choice([0, 0, 1, 2]) for _ in range(world)] for _ in range(windows)]
    for w in range(windows):
        mine = defaultdict(list)
        for g, ranks in enumerate(groups):
            early = [left_over[w][rank] for rank in ranks]
            last = 1000
            for n in range(-2, r.randint(1, 6)):
                arrivals = {rank: last + r.randint(1, 200) for rank in ranks}
                last = max(arrivals.values()) + r.randint(5, 50)
                ends = {rank: last + r.randint(0, 3) for rank in ranks}
                seq[g] += 1
                have = [rank for rank, e in zip(ranks, early, strict=True) if n >= 0 or e >= -n]
                for rank in have:
                    args = {"Collective name": "allreduce", "Process Group Name": "7", "Process Group Ranks": str(ranks)}
                    args |= {"In msg nelems": 500, "Out msg nelems": 500, "dtype": "Float", "Group size": len(ranks)}
                    args |= {"Seq": seq[g]} if with_seq else {}
                    mine[rank].append(one(arrivals[rank], ends[rank], launched=n >= 0, **args))
                if have and (with_seq or n >= 0 or len(set(early)) == 1):
                    start = max(arrivals[x] for x in have)
                    wait = start - min(arrivals[x] for x in have) if len(have) > 1 else None
                    lengths = [ends[x] - arrivals[x] for x in have]
                    transfer = max(ends[x] for x in have) - start if len(have) > 1 else min(lengths)
                    want[str(ranks)].append((statistics.mean(lengths), wait, transfer))
        for rank, list_ in mine.items():
            kernels(tmp_path / "job" / f"{rank}-{w}.json", rank, world, list_, 10 * w)
    rows = {row["group"]: row for row in answer(tracelake, tmp_path)}
    names = {str(g): "7" if len(groups) == 1 else f"7 {g}" for g in groups}
    assert set(rows) == set(names.values())
    for group, found in want.items():
        row = rows[names[group]]
        mean, wait, transfer = ([x for x in column if x is not None] for column in zip(*found, strict=True))
        assert (row["count"], row["ranks"]) == (len(found), len(json.loads(group)))
        assert row["matched_by"] == ("sequence" if with_seq else "order")
        got = [row["mean_us"], row["wait_us"], row["transfer_us"]]
        assert got == pytest.approx([statistics.mean(mean), statistics.mean(wait), statistics.mean(transfer)], abs=6e-4)


def test_real(tracelake, shared, tmp_path):
    """An exchange among four ranks, of which three end an earlier one first: what is matched then runs at the same time."""
    folder = shared / "traces" / "kineto" / "torchrec" / "golden_training-trace-sst_long_a2a_optimizer"
    tracelake("convert", folder, "-o", tmp_path / "lake", "-q")
    (row,) = [json.loads(x) for x in tracelake("analyze", "collectives", tmp_path / "lake", "--format", "json").stdout.splitlines()]
    query = "SELECT rank, start_ns, end_ns FROM gpu_work WHERE class = 'communication' ORDER BY start_ns"
    by_rank = defaultdict(list)
    for line in tracelake("sql", tmp_path / "lake", query, "--format", "csv").stdout.splitlines()[1:]:
        rank, start, end = map(int, line.split(","))
        by_rank[rank].append((start, end))
    assert sorted(map(len, by_rank.values())) == [12, 13, 13, 13]
    sets = list(zip(*(x[-12:] for x in by_rank.values()), strict=True))
    assert all(max(s for s, _ in x) < min(e for _, e in x) for x in sets)
    waits = [max(s for s, _ in x) - min(s for s, _ in x) for x in sets]
    transfers = [max(e for _, e in x) - max(s for s, _ in x) for x in sets]
    assert (row["ranks"], row["count"], row["matched_by"]) == (4, 12, "order")
    want = statistics.mean(waits) / 1e3, statistics.mean(transfers) / 1e3
    assert (row["wait_us"], row["transfer_us"]) == pytest.approx(want, abs=6e-4)
