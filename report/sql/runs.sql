-- title: Runs
-- what it answers: How do the runs compare? Device times are summed over the devices of a run.
-- columns and units:
--   run          run
--   traces       traces
--   ranks        ranks
--   devices      devices with GPU work
--   verdict      worst verdict of its traces
--   wall_ms      longest trace, ms
--   gpu_events   GPU events
--   iterations   iterations marked
--   busy_pct     busy time over the windows of the devices, %
--   window_ns    first start to last end of GPU work, summed over devices, ns
--   compute_ns   time with a kernel running that is no collective, ns
--   exposed_communication_ns  communication without computing, ns
--   exposed_memory_ns  copies and sets alone, ns
--   idle_ns      window without GPU work, ns
WITH s AS (
  SELECT run, count(*) AS traces, count(DISTINCT rank) AS ranks, max(wall_ms) AS wall_ms, sum(gpu_events)::BIGINT AS gpu_events, sum(iterations)::BIGINT AS iterations
  FROM report_summary GROUP BY run
),
v AS (
  SELECT run, CASE max(CASE verdict WHEN 'poor' THEN 2 WHEN 'fair' THEN 1 ELSE 0 END) WHEN 2 THEN 'poor' WHEN 1 THEN 'fair' ELSE 'good' END AS verdict
  FROM report_trust GROUP BY run
),
d AS (
  SELECT run, count(*) AS devices, sum(window_ns)::BIGINT AS window_ns, sum(busy_ns)::BIGINT AS busy_ns, sum(idle_ns)::BIGINT AS idle_ns, sum(compute_ns)::BIGINT AS compute_ns,
    sum(exposed_communication_ns)::BIGINT AS exposed_communication_ns, sum(exposed_memory_ns)::BIGINT AS exposed_memory_ns
  FROM report_devices GROUP BY run
)
SELECT s.run, s.traces, s.ranks, coalesce(d.devices, 0) AS devices, v.verdict, s.wall_ms, s.gpu_events, s.iterations,
  round(100.0 * d.busy_ns / nullif(d.window_ns, 0), 2) AS busy_pct,
  d.window_ns, d.compute_ns, d.exposed_communication_ns, d.exposed_memory_ns, d.idle_ns
FROM s
LEFT JOIN v ON v.run = s.run
LEFT JOIN d ON d.run = s.run
ORDER BY s.run;
