-- title: GPU work without a launch or an iteration
-- what it answers: Which GPU events could not be linked to the call that launched them, or to an iteration, and why?
-- selects: run, rank, trace, device, from, to
-- needs: GPU work without a launch or outside of the iterations; where there is none, all of it is linked
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
WITH counted AS (
  SELECT
    g.trace_id, any_value(t.run) AS run, any_value(t.rank) AS rank, g.kind, g.link_status, g.unresolved_reason, count(*) AS gpu_events,
    sum(CASE WHEN timed(g.start_ns, g.dur_ns, g.time_flag) THEN g.dur_ns ELSE 0 END) AS ns
  FROM gpu_events AS g
  JOIN selected_traces AS t ON t.trace_id = g.trace_id
  WHERE in_window(g.start_ns, t.start_ns) AND (getvariable('device') IS NULL OR g.device = getvariable('device')::BIGINT)
  GROUP BY g.trace_id, g.kind, g.link_status, g.unresolved_reason
)
SELECT
  run, rank, trace_id, kind, link_status, unresolved_reason, gpu_events,
  round(ns / 1e6, 3) AS total_ms,
  round(100.0 * ns / nullif(sum(ns) OVER (PARTITION BY trace_id), 0), 2) AS share_pct
FROM counted
QUALIFY link_status <> 'linked' OR unresolved_reason IS NOT NULL
ORDER BY run, rank, trace_id, total_ms DESC, kind, link_status, unresolved_reason;
