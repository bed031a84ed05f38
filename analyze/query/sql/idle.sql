-- title: Why GPUs wait
-- what it answers: In which gaps was each GPU, or each stream, idle, and what was it waiting for?
--   A gap lies between the end of all earlier work and the next start. host: the next work was launched after the gap
--   began, so the host was late. graph: the work before and behind the gap belongs to one graph launch. other_stream
--   (streams only): the work was launched in time, and another stream of the device worked during all of the gap. short:
--   the rest, where the gap is shorter than kernel_gap_ns, which launching back to back explains. other: the rest;
--   unknown: the next work is not linked to its launch.
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
WITH work AS (
  SELECT w.trace_id, w.run, w.rank, w.process, w.device, w.stream, w.start_ns, w.end_ns, w.event_index, w.launch_id, w.graph_id, l.start_ns AS launched_ns
  FROM gpu_work AS w
  LEFT JOIN launches AS l ON l.trace_id = w.trace_id AND l.event_index = w.launch_id
),
scoped AS (
  SELECT *, false AS by_stream FROM work
  UNION ALL
  SELECT *, true FROM work
),
gaps AS (
  SELECT
    trace_id, run, rank, process, device, by_stream, CASE WHEN by_stream THEN stream END AS stream,
    start_ns, launched_ns, launch_id, graph_id,
    lag(launch_id) OVER o AS before_launch, lag(graph_id) OVER o AS before_graph,
    max(end_ns) OVER (o ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS since_ns
  FROM scoped
  WINDOW o AS (PARTITION BY trace_id, process, device, by_stream, CASE WHEN by_stream THEN stream END ORDER BY start_ns, event_index)
),
busy AS ( -- the device as a whole, to see whether another stream worked
  SELECT trace_id, process, device, start_ns, end_ns, working,
    sum(working * (end_ns - start_ns)) OVER (PARTITION BY trace_id, process, device ORDER BY start_ns) - working * (end_ns - start_ns) AS before_ns
  FROM (SELECT *, (compute + communication + memory > 0)::INT AS working FROM gpu_states)
),
real AS (
  SELECT *, start_ns - since_ns AS gap_ns FROM gaps WHERE since_ns IS NOT NULL AND start_ns > since_ns
),
covered AS ( -- how much of a stream's gap the device worked
  SELECT r.*,
    CASE WHEN r.by_stream THEN b2.before_ns + b2.working * (least(r.start_ns, b2.end_ns) - b2.start_ns)
      - b1.before_ns - b1.working * (least(r.since_ns, b1.end_ns) - b1.start_ns) END AS others_ns
  FROM real AS r
  ASOF LEFT JOIN busy AS b1
    ON b1.trace_id = r.trace_id AND b1.process IS NOT DISTINCT FROM r.process AND b1.device IS NOT DISTINCT FROM r.device AND b1.start_ns <= r.since_ns
  ASOF LEFT JOIN busy AS b2
    ON b2.trace_id = r.trace_id AND b2.process IS NOT DISTINCT FROM r.process AND b2.device IS NOT DISTINCT FROM r.device AND b2.start_ns <= r.start_ns
),
named AS (
  SELECT *, CASE
    WHEN graph_id IS NOT NULL AND graph_id = before_graph AND launch_id IS NOT DISTINCT FROM before_launch THEN 'graph'
    WHEN launched_ns > since_ns THEN 'host'
    WHEN by_stream AND others_ns >= gap_ns THEN 'other_stream'
    WHEN gap_ns < coalesce(getvariable('kernel_gap_ns')::BIGINT, 30000) THEN 'short'
    WHEN launched_ns IS NULL THEN 'unknown'
    ELSE 'other' END AS reason
  FROM covered
)
SELECT
  run, rank, trace_id, process, device, stream, reason,
  count(*) AS gaps,
  sum(gap_ns)::BIGINT AS idle_ns,
  round(100.0 * sum(gap_ns) / sum(sum(gap_ns)) OVER (PARTITION BY trace_id, process, device, by_stream, stream), 2) AS share_pct,
  round(avg(gap_ns) / 1e3, 3) AS mean_us,
  round(max(gap_ns) / 1e3, 3) AS max_us
FROM named
GROUP BY run, rank, trace_id, process, device, by_stream, stream, reason
ORDER BY run, rank, trace_id, process, device, by_stream, stream, idle_ns DESC, reason;
