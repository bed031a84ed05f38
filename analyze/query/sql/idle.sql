-- title: Why GPUs wait
-- what it answers: In which gaps was each GPU, or each stream, idle, and what was it waiting for?
--   A gap lies between the end of all earlier work and the next start. host: the next work was launched after the gap
--   began, so the host was late. graph: the work before and behind the gap belongs to one graph launch. other_stream
--   (streams only): the work was launched in time, and another stream of the device worked during all of the gap. short:
--   the rest, where the gap is shorter than kernel_gap_ns, which launching back to back explains. other: the rest;
--   unknown: the next work is not linked to its launch.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: gaps between GPU events
-- parameters:
--   kernel_gap_ns  gaps shorter than that are short; default 30000 ns
-- columns and units:
--   run        run of the trace
--   rank       rank; null where nothing tells it
--   trace_id   trace
--   process    global ID of the process whose ordinals the devices are (Nsight Systems)
--   device     device ordinal
--   stream     stream; null for the device as a whole
--   reason     host, graph, other_stream, short, other or unknown
--   gaps       gaps
--   idle_ns    their summed length, ns
--   share_pct  part of the idle time of the device or stream, %
--   mean_us    mean length, µs
--   max_us     longest, µs
WITH on_device AS ( -- how far all work of the device up to here reaches, and what was before
  SELECT *, max(reach(part, end_ns)) OVER (ROWS UNBOUNDED PRECEDING) AS furthest, coalesce(lag(part) OVER () = part, false) AS later,
    launch_id = lag(launch_id) OVER () AS same_launch
  FROM (
    SELECT part_number(trace_id, process, device) AS part, stream, start_ns, end_ns, event_index, launch_id, graph_id
    FROM gpu_work
    ORDER BY part, start_ns, event_index
  )
),
since AS (
  SELECT *, CASE WHEN later THEN reached(lag(furthest) OVER (), part) END AS since_ns FROM on_device
),
marked AS ( -- where the last gap of the device up to here ended: the device worked during all of a gap of a stream if not within that
  SELECT part, stream, start_ns, end_ns, event_index, launch_id, graph_id, since_ns, same_launch,
    max(CASE WHEN NOT later THEN reach(part, -4611686018427387904) WHEN start_ns > since_ns THEN reach(part, start_ns) END) OVER (ROWS UNBOUNDED PRECEDING) AS last_gap
  FROM since
),
on_stream AS (
  SELECT *, max(reach(lane, end_ns)) OVER (ROWS UNBOUNDED PRECEDING) AS furthest, coalesce(lag(lane) OVER () = lane, false) AS later,
    launch_id = lag(launch_id) OVER () AS stream_same_launch
  FROM (
    SELECT part, part_number(part, stream, NULL) AS lane, stream, start_ns, end_ns, event_index, launch_id, graph_id, since_ns, same_launch, reached(last_gap, part) AS device_until_ns
    FROM marked
    ORDER BY lane, start_ns, event_index
  )
),
on_both AS (
  SELECT part, stream, start_ns, launch_id, graph_id, since_ns, same_launch, device_until_ns, CASE WHEN later THEN reached(lag(furthest) OVER (), lane) END AS stream_since_ns, stream_same_launch
  FROM on_stream
),
gaps AS (
  SELECT part, NULL AS stream, false AS by_stream, launch_id, graph_id, since_ns, start_ns - since_ns AS gap_ns, same_launch, false AS covered
  FROM on_both
  WHERE start_ns > since_ns
  UNION ALL
  SELECT part, stream, true, launch_id, graph_id, stream_since_ns, start_ns - stream_since_ns, stream_same_launch, device_until_ns <= stream_since_ns
  FROM on_both
  WHERE start_ns > stream_since_ns
),
named AS (
  SELECT d.trace_id, d.process, d.device, g.stream, g.by_stream, g.gap_ns, CASE
    WHEN g.same_launch AND (g.graph_id IS NOT NULL OR launches_graph(l.api)) THEN 'graph'
    WHEN l.start_ns > g.since_ns THEN 'host'
    WHEN g.covered THEN 'other_stream'
    WHEN g.gap_ns < coalesce(getvariable('kernel_gap_ns')::BIGINT, 30000) THEN 'short'
    WHEN l.start_ns IS NULL THEN 'unknown'
    ELSE 'other' END AS reason
  FROM gaps AS g
  JOIN gpu_parts AS d ON d.part = g.part
  LEFT JOIN launches AS l ON l.trace_id = d.trace_id AND l.event_index = g.launch_id
),
sums AS (
  SELECT trace_id, process, device, by_stream, stream, reason, count(*) AS gaps, sum(gap_ns)::BIGINT AS idle_ns, avg(gap_ns) AS mean_ns, max(gap_ns) AS max_ns
  FROM named
  GROUP BY ALL
)
SELECT
  t.run, t.rank, s.trace_id, s.process, s.device, s.stream, s.reason, s.gaps, s.idle_ns,
  round(100.0 * s.idle_ns / sum(s.idle_ns) OVER (PARTITION BY s.trace_id, s.process, s.device, s.by_stream, s.stream), 2) AS share_pct,
  round(s.mean_ns / 1e3, 3) AS mean_us,
  round(s.max_ns / 1e3, 3) AS max_us
FROM sums AS s
JOIN selected_traces AS t ON t.trace_id = s.trace_id
ORDER BY t.run, t.rank, s.trace_id, s.process, s.device, s.by_stream, s.stream, s.idle_ns DESC, s.reason;
