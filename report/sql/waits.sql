-- title: Idle time of devices
-- what it answers: How long was nothing running on a device, and what was it waiting for?
--   host: the next work was launched after the gap began, so the host was late. graph: a gap inside one graph launch. short:
--   a gap that launching back to back explains. unknown: the next work is not linked to its launch. other: the rest.
-- columns and units:
--   run         run of the trace
--   rank        rank; null where nothing tells it
--   trace_id    trace
--   process     global ID of the process whose ordinals the devices are (Nsight Systems)
--   device      device ordinal
--   idle_ns     window without GPU work, ns
--   host_ns     part of it with the reason host, ns
--   graph_ns    part of it with the reason graph, ns
--   short_ns    part of it with the reason short, ns
--   other_ns    part of it with the reason other, ns
--   unknown_ns  part of it with the reason unknown, ns
--   gaps        gaps
--   max_us      longest gap, µs
WITH whole AS (
  -- Rows of idle for a device as a whole come before those of its streams, and add up to its idle time; those of a stream
  -- without a number look the same.
  SELECT i.*
  FROM report_idle AS i
  JOIN report_devices AS d ON d.trace_id = i.trace_id AND d.process IS NOT DISTINCT FROM i.process AND d.device IS NOT DISTINCT FROM i.device
  WHERE i.stream IS NULL
  QUALIFY sum(i.idle_ns) OVER (PARTITION BY i.trace_id, i.process, i.device ORDER BY i.rowid) <= d.idle_ns
)
SELECT run, rank, trace_id, process, device,
  sum(idle_ns)::BIGINT AS idle_ns,
  coalesce(sum(idle_ns) FILTER (reason = 'host'), 0)::BIGINT AS host_ns,
  coalesce(sum(idle_ns) FILTER (reason = 'graph'), 0)::BIGINT AS graph_ns,
  coalesce(sum(idle_ns) FILTER (reason = 'short'), 0)::BIGINT AS short_ns,
  coalesce(sum(idle_ns) FILTER (reason = 'other'), 0)::BIGINT AS other_ns,
  coalesce(sum(idle_ns) FILTER (reason = 'unknown'), 0)::BIGINT AS unknown_ns,
  sum(gaps)::BIGINT AS gaps, max(max_us) AS max_us
FROM whole
GROUP BY run, rank, trace_id, process, device
ORDER BY sum(idle_ns) DESC, trace_id, process, device;
