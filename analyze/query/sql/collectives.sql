-- title: Collectives
-- what it answers: How large and how fast are the collectives, and how unevenly do the ranks arrive?
--   Kernels of one collective are matched across the ranks of a run (the GPUs of a trace count as ranks) by process group and sequence number; where the trace
--   gives no sequence, by their order within the group. Bandwidth is over the transfer: from the last arrival to the last
--   end, or the shortest duration where the clocks of the ranks cannot be compared. Bus bandwidth has the factors of
--   nccl-tests: 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 for the rest.
-- needs: collectives among the kernels
-- columns and units:
--   run          run
--   collective   operation, or the kernel where the trace says no more
--   group        process group
--   group_size   ranks of the group, as recorded
--   ranks        ranks that were traced
--   bytes        size of the message: sent, or gathered by an all-gather; the largest where ranks differ
--   count        collectives of that size
--   mean_us      mean duration on one rank, µs
--   wait_us      mean time between first and last arrival, µs; null with one rank or clocks that do not compare
--   transfer_us  mean time of the transfer, µs
--   alg_gb_per_s bytes over the transfer, GB/s (1e9 bytes)
--   bus_gb_per_s the same times the factor, GB/s
--   matched_by   sequence or order
WITH kernels AS (
  SELECT w.run, w.trace_id, concat_ws(' ', coalesce('rank ' || w.rank, w.trace_id), w.process, w.device) AS member, w.start_ns, w.end_ns, w.dur_ns, t.clock, w.group_size,
    coalesce(w.collective_name, nullif(regexp_extract(w.name, '(nccl|rccl)[_A-Za-z0-9]*', 0), ''), w.name) AS collective,
    coalesce(w.process_group_name, w.process_group_ranks, '') AS "group",
    w.collective_seq AS seq,
    row_number() OVER (PARTITION BY w.trace_id, w.process, w.device, coalesce(w.process_group_name, w.process_group_ranks, ''), coalesce(w.collective_name, w.name) ORDER BY w.start_ns, w.event_index) AS nth,
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
matched AS (
  SELECT
    run, collective, "group", max(bytes) AS bytes, max(group_size) AS group_size, count(DISTINCT member) AS ranks,
    avg(dur_ns) AS dur_ns, max(start_ns) - min(start_ns) AS wait_ns, max(end_ns) - max(start_ns) AS transfer_ns, min(dur_ns) AS shortest_ns,
    bool_and(clock = 'epoch') OR count(DISTINCT trace_id) = 1 AS comparable, seq IS NOT NULL AS by_sequence
  FROM kernels
  GROUP BY run, collective, "group", coalesce(seq, -1), seq IS NOT NULL, CASE WHEN seq IS NULL THEN nth END
),
timed_ones AS (
  SELECT *,
    CASE WHEN ranks > 1 AND comparable THEN wait_ns END AS arrival_ns,
    CASE WHEN ranks > 1 AND comparable AND transfer_ns > 0 THEN transfer_ns ELSE shortest_ns END AS move_ns,
    CASE
      WHEN regexp_matches(collective, '(?i)all_?reduce') THEN 2.0 * (coalesce(group_size, ranks) - 1) / coalesce(group_size, ranks)
      WHEN regexp_matches(collective, '(?i)all_?gather|reduce_?scatter|all_?to_?all') THEN 1.0 * (coalesce(group_size, ranks) - 1) / coalesce(group_size, ranks)
      ELSE 1.0 END AS factor
  FROM matched
)
SELECT
  run, collective, "group", max(group_size) AS group_size, max(ranks) AS ranks, bytes,
  count(*) AS count,
  round(avg(dur_ns) / 1e3, 3) AS mean_us,
  round(avg(arrival_ns) / 1e3, 3) AS wait_us,
  round(avg(move_ns) / 1e3, 3) AS transfer_us,
  round(bytes / nullif(avg(move_ns), 0), 3) AS alg_gb_per_s,
  round(avg(factor) * bytes / nullif(avg(move_ns), 0), 3) AS bus_gb_per_s,
  CASE WHEN bool_and(by_sequence) THEN 'sequence' ELSE 'order' END AS matched_by
FROM timed_ones
GROUP BY run, collective, "group", bytes
ORDER BY run, sum(dur_ns) DESC, collective, "group", bytes;
