-- title: One line per trace
-- what it answers: What is in each trace, and how busy was its GPU? Of whole traces: devices, kernels and iterations tell parts.
-- selects: run, rank, trace
-- needs: traces
-- columns and units:
--   run         run of the trace
--   rank        rank; null where nothing tells it
--   trace_id    trace
--   path        file as it was given
--   outcome     ok, repaired or partial
--   wall_ms     earliest start to latest end of any event, ms
--   gpu_events  GPU events
--   kernels     kernels among them
--   linked_pct  GPU events linked to their launch, %
--   gpu_ms      summed time of GPU events, ms
--   busy_pct    busy time of the GPUs over the wall time of the trace and its devices, %
--   iterations  iterations marked
--   ranges      annotations
--   cpu_events  operators, Python functions and the like
--   top_kernel  kernel with the largest summed time
WITH gpu AS ( -- of all of a trace, as the other columns are
  SELECT g.trace_id, g.kind, g.name, g.dur_ns
  FROM gpu_events AS g SEMI JOIN selected_traces AS t ON t.trace_id = g.trace_id
  WHERE timed(g.start_ns, g.dur_ns, g.time_flag)
),
work AS (
  SELECT trace_id, count(*) FILTER (kind = 'gpu_kernel') AS kernels, sum(dur_ns) AS ns FROM gpu GROUP BY ALL
),
tops AS (
  SELECT trace_id, min_by(name, (-ns, name)) AS name FROM ( -- of equal sums the name that kernels has first
    SELECT trace_id, name, sum(dur_ns) AS ns FROM gpu WHERE kind = 'gpu_kernel' GROUP BY ALL
  ) GROUP BY ALL
),
busy AS (
  SELECT trace_id, sum(busy_ns) AS busy_ns, count(*) AS devices FROM devices WHERE gpu_events > 0 GROUP BY ALL
)
SELECT
  t.run, t.rank, t.trace_id, t.path, t.outcome,
  round((t.end_ns - t.start_ns) / 1e6, 3) AS wall_ms,
  t.gpu_events,
  coalesce(w.kernels, 0) AS kernels,
  round(100.0 * t.linked_gpu_events / nullif(t.gpu_events, 0), 2) AS linked_pct,
  round(coalesce(w.ns, 0) / 1e6, 3) AS gpu_ms,
  round(100.0 * b.busy_ns / nullif((t.end_ns - t.start_ns) * b.devices, 0), 2) AS busy_pct,
  t.iterations, t.ranges, t.cpu_events,
  p.name AS top_kernel
FROM selected_traces AS t
LEFT JOIN work AS w ON w.trace_id = t.trace_id
LEFT JOIN tops AS p ON p.trace_id = t.trace_id
LEFT JOIN busy AS b ON b.trace_id = t.trace_id
ORDER BY t.run, t.rank, t.trace_id;
