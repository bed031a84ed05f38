-- title: Ranks side by side
-- what it answers: Which ranks of a run work, communicate or wait longer than the others?
--   Device times are summed over the devices of a rank. Runs with one rank are left out.
-- columns and units:
--   run           run
--   rank          rank
--   traces        traces
--   devices       devices with GPU work
--   busy_pct      busy time over the windows of the devices, %
--   window_ns     first start to last end of GPU work, ns
--   compute_ns    time with a kernel running that is no collective, ns
--   communication_ns  time with a collective running, ns
--   exposed_communication_ns  communication without computing, ns
--   exposed_memory_ns  copies and sets alone, ns
--   idle_ns       window without GPU work, ns
--   iterations    iterations
--   mean_wall_ms  mean length of an iteration, ms
--   max_wall_ms   longest iteration, ms
--   straggler     iterations in which the others wait for this rank
WITH d AS (
  SELECT run, rank, count(DISTINCT trace_id) AS traces, count(*) AS devices, sum(window_ns)::BIGINT AS window_ns, sum(busy_ns)::BIGINT AS busy_ns, sum(idle_ns)::BIGINT AS idle_ns,
    sum(compute_ns)::BIGINT AS compute_ns, sum(communication_ns)::BIGINT AS communication_ns,
    sum(exposed_communication_ns)::BIGINT AS exposed_communication_ns, sum(exposed_memory_ns)::BIGINT AS exposed_memory_ns
  FROM report_devices WHERE rank IS NOT NULL GROUP BY run, rank
),
i AS (
  SELECT run, rank, count(*) AS iterations, round(avg(wall_ms), 3) AS mean_wall_ms, max(wall_ms) AS max_wall_ms FROM report_iterations GROUP BY run, rank
),
s AS (
  SELECT run, straggler AS rank, count(*) AS straggler FROM report_stragglers GROUP BY run, straggler
)
SELECT d.run, d.rank, d.traces, d.devices, round(100.0 * d.busy_ns / nullif(d.window_ns, 0), 2) AS busy_pct,
  d.window_ns, d.compute_ns, d.communication_ns, d.exposed_communication_ns, d.exposed_memory_ns, d.idle_ns,
  coalesce(i.iterations, 0) AS iterations, i.mean_wall_ms, i.max_wall_ms, coalesce(s.straggler, 0) AS straggler
FROM d
LEFT JOIN i ON i.run = d.run AND i.rank = d.rank
LEFT JOIN s ON s.run = d.run AND s.rank = d.rank
QUALIFY count(*) OVER (PARTITION BY d.run) > 1
ORDER BY d.run, d.rank;
