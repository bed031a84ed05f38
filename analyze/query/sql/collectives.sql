-- title: Collectives
-- what it answers: How large and how fast are the collectives, and how unevenly do the ranks arrive?
--   Kernels of one collective are matched across the ranks of a run (the GPUs of a trace count as ranks) by process group and sequence number; where the trace
--   gives no sequence, by their order within the group. Several traces of a rank are windows, of which the n-th of each rank belong
--   together. By order, ranks with different numbers of a collective are matched from the first on that each launched while it was
--   recorded; where the numbers differ even then, or most of what was matched never ran at the same time although
--   each rank needs the data of all, nothing is matched. Bandwidth is over the transfer: from the last arrival to the last
--   end, or the shortest duration where the clocks of the ranks cannot be compared. Bus bandwidth has the factors of
--   nccl-tests: 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 for the rest.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: collectives among the kernels
-- columns and units:
--   run          run
--   collective   operation, or the kernel where the trace says no more
--   group        process group, and its ranks where several of a run have that name
--   group_size   ranks of the group, as recorded
--   ranks        ranks that were traced
--   bytes        size of the message: sent, or gathered by an all-gather; the largest where ranks differ
--   count        collectives of that size
--   mean_us      mean duration on one rank, µs
--   wait_us      mean time between first and last arrival, µs; null with one rank, clocks that do not compare or nothing matched
--   transfer_us  mean time of the transfer, µs; null with nothing matched
--   alg_gb_per_s bytes over the transfer, GB/s (1e9 bytes)
--   bus_gb_per_s the same times the factor, GB/s
--   matched_by   sequence, order or cannot be matched
WITH found AS (
  SELECT w.run, w.rank, w.trace_id, concat_ws(' ', coalesce('rank ' || w.rank, w.trace_id), w.process, w.device) AS member, w.start_ns, w.end_ns, w.dur_ns, w.event_index,
    w.link_status = 'linked' AS linked, t.clock, t.start_ns AS trace_start_ns, w.group_size,
    coalesce(w.collective_name, nullif(regexp_extract(w.name, '(nccl|rccl)[_A-Za-z0-9]*', 0), ''), w.name) AS collective,
    coalesce(w.process_group_name, w.process_group_ranks, '') AS "group", coalesce(w.process_group_ranks, '') AS group_ranks,
    w.collective_seq AS seq,
    CASE WHEN regexp_matches(coalesce(w.collective_name, w.name), '(?i)all_?gather') THEN greatest(w.in_msg_nelems, w.out_msg_nelems) ELSE coalesce(nullif(w.in_msg_nelems, 0), w.out_msg_nelems) END
      * CASE
        WHEN regexp_matches(w.collective_dtype, '(?i)double|float64|long|int64|complexfloat') THEN 8
        WHEN regexp_matches(w.collective_dtype, '(?i)bfloat16|half|float16|short|int16') THEN 2
        WHEN regexp_matches(w.collective_dtype, '(?i)byte|char|bool|int8|float8|u8') THEN 1
        WHEN regexp_matches(w.collective_dtype, '(?i)float|int') THEN 4 END AS bytes
  FROM gpu_work AS w
  JOIN selected_traces AS t ON t.trace_id = w.trace_id
  WHERE w.class = 'communication'
),
windows AS (
  SELECT trace_id, coalesce(rank::VARCHAR, trace_id) AS owner, row_number() OVER (PARTITION BY run, owner ORDER BY trace_start_ns, trace_id) AS number
  FROM (SELECT DISTINCT run, rank, trace_id, trace_start_ns FROM found)
),
placed AS ( -- a sequence goes on from one window to the next, or starts again where the job did
  SELECT f.*, hash(f.run, f.collective, f."group", f.group_ranks,
      CASE WHEN f.seq IS NULL THEN w.number ELSE dense_rank() OVER (PARTITION BY f.run, w.owner, f.collective, f."group", f.group_ranks, f.seq ORDER BY w.number) END, f.seq) AS part
  FROM found AS f
  JOIN windows AS w ON w.trace_id = f.trace_id
),
kernels AS ( -- begun is false before the first that a rank launched while it was recorded
  SELECT *, hash(part, member) AS lane, row_number() OVER m AS nth, bool_or(linked) OVER m AS begun
  FROM placed
  WINDOW m AS (PARTITION BY part, member ORDER BY start_ns, event_index ROWS UNBOUNDED PRECEDING)
),
members AS (
  SELECT part, lane, count(*) AS n, if(bool_or(begun), count(*) FILTER (NOT begun), 0) AS early
  FROM kernels
  WHERE seq IS NULL
  GROUP BY part, lane
),
parts AS (
  SELECT part, min(n) <> max(n) AND min(n - early) = max(n - early) AS skip, min(n) <> max(n) AND min(n - early) <> max(n - early) AS uneven
  FROM members
  GROUP BY part
),
matched AS (
  SELECT
    any_value(k.run) AS run, any_value(k.collective) AS collective, any_value(k."group") AS "group", any_value(k.group_ranks) AS group_ranks,
    max(k.bytes) AS bytes, max(k.group_size) AS group_size, count(DISTINCT k.member) AS ranks,
    avg(k.dur_ns) AS dur_ns, max(k.start_ns) - min(k.start_ns) AS wait_ns, max(k.end_ns) - max(k.start_ns) AS transfer_ns, min(k.dur_ns) AS shortest_ns,
    bool_and(k.clock = 'epoch') OR count(DISTINCT k.trace_id) = 1 AS comparable, bool_and(k.seq IS NOT NULL) AS by_sequence,
    coalesce(any_value(p.uneven), false) AS uneven, k.part, max(k.start_ns) > min(k.end_ns) AS apart
  FROM kernels AS k
  LEFT JOIN members AS m ON m.part = k.part AND m.lane = k.lane
  LEFT JOIN parts AS p ON p.part = k.part
  WHERE p.skip IS NOT TRUE OR k.nth > m.early
  GROUP BY k.part, CASE WHEN k.seq IS NULL THEN k.nth - if(p.skip, m.early, 0) END
),
told AS (
  SELECT *,
    uneven OR NOT by_sequence AND regexp_matches(collective, '(?i)all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|sendrecv')
      AND 2 * count(*) FILTER (apart AND comparable) OVER (PARTITION BY part) > count(*) OVER (PARTITION BY part) AS unmatched
  FROM matched
),
timed_ones AS (
  SELECT *,
    CASE WHEN ranks > 1 AND comparable AND NOT unmatched THEN wait_ns END AS arrival_ns,
    CASE WHEN unmatched THEN NULL WHEN ranks > 1 AND comparable AND transfer_ns > 0 THEN transfer_ns ELSE shortest_ns END AS move_ns,
    CASE
      WHEN regexp_matches(collective, '(?i)all_?reduce') THEN 2.0 * (coalesce(group_size, ranks) - 1) / coalesce(group_size, ranks)
      WHEN regexp_matches(collective, '(?i)all_?gather|reduce_?scatter|all_?to_?all') THEN 1.0 * (coalesce(group_size, ranks) - 1) / coalesce(group_size, ranks)
      ELSE 1.0 END AS factor
  FROM told
),
sums AS (
  SELECT
    run, collective, "group", group_ranks, max(group_size) AS group_size, max(ranks) AS ranks, bytes, count(*) AS count, sum(dur_ns) AS dur_ns,
    if(bool_or(unmatched), NULL, avg(arrival_ns)) AS arrival_ns, if(bool_or(unmatched), NULL, avg(move_ns)) AS move_ns, avg(factor) AS factor,
    CASE WHEN bool_or(unmatched) THEN 'cannot be matched' WHEN bool_and(by_sequence) THEN 'sequence' ELSE 'order' END AS matched_by
  FROM timed_ones
  GROUP BY run, collective, "group", group_ranks, bytes
)
SELECT
  run, collective,
  if(min(group_ranks) OVER g <> max(group_ranks) OVER g AND group_ranks NOT IN ('', "group"), "group" || ' ' || group_ranks, "group") AS "group",
  group_size, ranks, bytes, count,
  round(dur_ns / count / 1e3, 3) AS mean_us,
  round(arrival_ns / 1e3, 3) AS wait_us,
  round(move_ns / 1e3, 3) AS transfer_us,
  round(bytes / nullif(move_ns, 0), 3) AS alg_gb_per_s,
  round(factor * bytes / nullif(move_ns, 0), 3) AS bus_gb_per_s,
  matched_by
FROM sums
WINDOW g AS (PARTITION BY run, "group")
ORDER BY run, dur_ns DESC, collective, "group", bytes, group_ranks;
