-- title: Ranges on the GPU
-- what it answers: How long does the GPU work of each annotation (NVTX, record_function) take, and how much of that time is the GPU busy?
--   The work of a range is what its thread launched between its start and its end, in ranges inside as well. Its
--   projection reaches from the first start to the last end of that work, over all devices.
-- parameters:
--   top  rows; default 25
-- columns and units:
--   name          text of the range
--   domain        NVTX domain; null for the default one
--   ranges        ranges with that text
--   projected     ranges with GPU work
--   range_ms      summed length of the ranges on the CPU, ms
--   projected_ms  summed length of their projections, ms
--   mean_us       mean length of a projection, µs
--   p50_us        median, µs
--   min_us        shortest, µs
--   max_us        longest, µs
--   busy_ms       time of the projections with an event of the range running, ms
--   busy_pct      busy_ms of projected_ms, %
--   gpu_ms        summed duration of their GPU events, ms
--   gpu_events    GPU events
WITH marks AS (
  SELECT r.trace_id, r.event_index, r.name, r.domain, coalesce(r.pid::VARCHAR, r.pid_text) AS pid, coalesce(r.tid::VARCHAR, r.tid_text) AS tid,
    r.start_ns, r.start_ns + r.dur_ns AS end_ns, r.dur_ns
  FROM ranges AS r
  JOIN selected_traces AS t ON t.trace_id = r.trace_id
  WHERE NOT r.on_gpu AND timed(r.start_ns, r.dur_ns, r.time_flag) AND in_window(r.start_ns, t.start_ns)
),
numbered AS ( -- the launches of a thread in order
  SELECT trace_id, pid, tid, event_index, start_ns, dense_rank() OVER (PARTITION BY trace_id, pid, tid ORDER BY start_ns) AS place FROM launched
),
spans AS ( -- which of them a range has
  SELECT m.trace_id, m.event_index, m.pid, m.tid, coalesce(a.place, 0) + 1 AS first, coalesce(b.place, 0) AS last
  FROM marks AS m
  ASOF LEFT JOIN numbered AS a ON a.trace_id = m.trace_id AND a.pid = m.pid AND a.tid = m.tid AND a.start_ns < m.start_ns
  ASOF LEFT JOIN numbered AS b ON b.trace_id = m.trace_id AND b.pid = m.pid AND b.tid = m.tid AND b.start_ns < m.end_ns
),
pairs AS MATERIALIZED ( -- or the planner joins ranges with all GPU work of a trace
  SELECT s.trace_id, s.event_index, n.event_index AS launch_id
  FROM (SELECT *, unnest(range(first, last + 1)) AS place FROM spans WHERE last >= first) AS s
  JOIN numbered AS n ON n.trace_id = s.trace_id AND n.pid = s.pid AND n.tid = s.tid AND n.place = s.place
),
work AS (
  SELECT p.trace_id, p.event_index, w.start_ns, w.end_ns, w.dur_ns,
    max(w.end_ns) OVER (PARTITION BY p.trace_id, p.event_index ORDER BY w.start_ns, w.event_index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
  FROM pairs AS p
  JOIN gpu_work AS w ON w.trace_id = p.trace_id AND w.launch_id = p.launch_id
),
projections AS (
  SELECT trace_id, event_index, max(end_ns) - min(start_ns) AS ns, sum(greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0)) AS busy_ns,
    sum(dur_ns) AS gpu_ns, count(*) AS gpu_events
  FROM work
  GROUP BY ALL
)
SELECT
  m.name, m.domain,
  count(*) AS ranges,
  count(p.ns) AS projected,
  round(sum(m.dur_ns) / 1e6, 3) AS range_ms,
  round(coalesce(sum(p.ns), 0) / 1e6, 3) AS projected_ms,
  round(avg(p.ns) / 1e3, 3) AS mean_us,
  round(median(p.ns) / 1e3, 3) AS p50_us,
  round(min(p.ns) / 1e3, 3) AS min_us,
  round(max(p.ns) / 1e3, 3) AS max_us,
  round(coalesce(sum(p.busy_ns), 0) / 1e6, 3) AS busy_ms,
  round(100.0 * sum(p.busy_ns) / nullif(sum(p.ns), 0), 2) AS busy_pct,
  round(coalesce(sum(p.gpu_ns), 0) / 1e6, 3) AS gpu_ms,
  coalesce(sum(p.gpu_events), 0)::BIGINT AS gpu_events
FROM marks AS m
LEFT JOIN projections AS p ON p.trace_id = m.trace_id AND p.event_index = m.event_index
GROUP BY m.name, m.domain
ORDER BY coalesce(sum(p.ns), 0) DESC, sum(m.dur_ns) DESC, m.name, m.domain
LIMIT coalesce(getvariable('top')::BIGINT, 25);
