-- title: Ranges on the GPU
-- what it answers: How long does the GPU work of each annotation (NVTX, record_function) take, and how much of that time is the GPU busy?
--   The work of a range is what its thread launched between its start and its end, in ranges inside as well. Its
--   projection reaches from the first start to the last end of that work, over all devices. --iteration, --from and --to
--   choose ranges by their start, with all GPU work that they launch.
-- selects: run, rank, trace, device, iteration, from, to
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
  SELECT r.event_index, r.name, r.domain, part_number(r.trace_id, coalesce(r.pid::VARCHAR, r.pid_text), coalesce(r.tid::VARCHAR, r.tid_text)) AS part,
    r.start_ns, r.start_ns + r.dur_ns AS end_ns, r.dur_ns
  FROM chosen_ranges() AS r
  JOIN selected_traces AS t ON t.trace_id = r.trace_id
  WHERE NOT r.on_gpu AND timed(r.start_ns, r.dur_ns, r.time_flag) AND in_window(r.start_ns, t.start_ns)
),
points AS ( -- at one moment ranges start and end before work is launched
  SELECT part, start_ns AS moment, true AS bound, event_index, NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns FROM marks
  UNION ALL
  SELECT part, end_ns, true, event_index, NULL, NULL FROM marks
  UNION ALL
  SELECT part_number(l.trace_id, l.pid::VARCHAR, l.tid::VARCHAR), l.start_ns, false, w.event_index, w.start_ns, w.end_ns
  FROM gpu_work_anytime AS w
  JOIN launches AS l ON l.trace_id = w.trace_id AND l.event_index = w.launch_id
  WHERE l.start_ns IS NOT NULL
),
numbered AS MATERIALIZED ( -- the GPU work of all threads in the order of the launches
  SELECT *, (sum((NOT bound)::INT) OVER (ROWS UNBOUNDED PRECEDING))::BIGINT AS place FROM (SELECT * FROM points ORDER BY part, moment, bound DESC)
),
spans AS ( -- what a range has of it
  SELECT part, event_index, min(place) + 1 AS first, max(place) AS last FROM numbered WHERE bound GROUP BY part, event_index HAVING max(place) > min(place)
),
alike AS ( -- ranges around each other often have the same
  SELECT first, last, row_number() OVER () AS span FROM (SELECT DISTINCT first, last FROM spans)
),
pairs AS MATERIALIZED ( -- or the planner joins ranges with all GPU work of a trace
  SELECT a.span, n.event_index, n.start_ns, n.end_ns
  FROM (SELECT span, unnest(range(first, last + 1)) AS place FROM alike) AS a
  JOIN numbered AS n ON n.place = a.place AND NOT n.bound
),
work AS (
  SELECT *, lag(span) OVER () = span AS later, max(reach(span, end_ns)) OVER (ROWS UNBOUNDED PRECEDING) AS furthest
  FROM (SELECT * FROM pairs ORDER BY span, start_ns, event_index)
),
parts AS (
  SELECT span, start_ns, end_ns, CASE WHEN later THEN reached(lag(furthest) OVER (), span) ELSE start_ns END AS before_ns FROM work
),
sums AS (
  SELECT span, max(end_ns) - min(start_ns) AS ns, sum(greatest(end_ns - greatest(start_ns, before_ns), 0)) AS busy_ns, sum(end_ns - start_ns) AS gpu_ns, count(*) AS gpu_events
  FROM parts
  GROUP BY span
),
projections AS (
  SELECT s.part, s.event_index, p.* FROM spans AS s JOIN alike AS a ON a.first = s.first AND a.last = s.last JOIN sums AS p ON p.span = a.span
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
LEFT JOIN projections AS p ON p.part = m.part AND p.event_index = m.event_index
GROUP BY m.name, m.domain
ORDER BY coalesce(sum(p.ns), 0) DESC, sum(m.dur_ns) DESC, m.name, m.domain
LIMIT coalesce(getvariable('top')::BIGINT, 25);
