-- title: GPU work without a launch or an iteration
-- what it answers: Which GPU events could not be linked to the call that launched them, or to an iteration, and why?
-- columns and units:
--   run                run of the trace
--   rank               rank; null where nothing tells it
--   trace_id           trace
--   kind               gpu_kernel, gpu_memcpy, gpu_memset or gpu_graph
--   link_status        linked, unlinked or ambiguous
--   unresolved_reason  why there is no iteration; null where the trace marks none
--   gpu_events         events
--   total_ms           sum of their durations, ms
--   share_pct          part of the summed GPU time of the trace, %
WITH timed AS (
  SELECT
    trace_id, kind, link_status, unresolved_reason,
    CASE WHEN dur_ns >= 0 AND (time_flag IS NULL OR time_flag = 'overruns_next') THEN dur_ns ELSE 0 END AS ns
  FROM gpu_events
),
totals AS (
  SELECT trace_id, sum(ns) AS trace_ns FROM timed GROUP BY trace_id
)
SELECT
  t.run,
  t.rank,
  g.trace_id,
  g.kind,
  g.link_status,
  g.unresolved_reason,
  count(*) AS gpu_events,
  round(sum(g.ns) / 1e6, 3) AS total_ms,
  round(100.0 * sum(g.ns) / nullif(any_value(s.trace_ns), 0), 2) AS share_pct
FROM timed AS g
JOIN totals AS s USING (trace_id)
JOIN traces AS t USING (trace_id)
WHERE g.link_status <> 'linked' OR g.unresolved_reason IS NOT NULL
GROUP BY ALL
ORDER BY t.run, t.rank, g.trace_id, total_ms DESC, g.kind, g.link_status, g.unresolved_reason;
