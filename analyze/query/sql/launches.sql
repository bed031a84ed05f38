-- title: What launching costs
-- what it answers: How long do the calls of the runtime and driver take, how long does their work wait, and how much of it is shorter than the call?
--   Delays are those of the first GPU event of each call: delay counts from the start of the call, queue from its end.
--   Work that starts before its call returns has a negative queue time. --iteration, --from and --to choose
--   calls, whenever their work starts.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: calls of the runtime or driver
-- parameters:
--   group_by  api (the default), trace, rank, iteration, or several joined by +
-- columns and units:
--   api                 call, or what else group_by says
--   calls               calls
--   total_ms            sum of their durations, ms
--   mean_us             mean duration, µs
--   p95_us              95th percentile, µs
--   max_us              longest, µs
--   launching           calls with GPU work
--   gpu_events          GPU events of these
--   mean_delay_us       mean start of the work after the start of the call, µs
--   p95_delay_us        95th percentile, µs
--   mean_queue_us       mean start of the work after the end of the call, µs
--   mean_wait_us        the same, where work that starts before the call returns has waited 0 µs
--   shorter_than_call   launching calls whose work takes less time than the call
--   shorter_pct         part of the launching calls, %
WITH work AS (
  SELECT trace_id, launch_id, min(start_ns) AS start_ns, sum(dur_ns) AS gpu_ns, count(*) AS events
  FROM gpu_work_anytime
  WHERE launch_id IS NOT NULL
  GROUP BY ALL
)
SELECT
  array_to_string(list_transform(string_split(coalesce(getvariable('group_by')::VARCHAR, 'api'), '+'), lambda b: CASE b
    WHEN 'api' THEN l.api
    WHEN 'trace' THEN l.trace_id
    WHEN 'rank' THEN 'rank ' || coalesce(l.rank::VARCHAR, '?')
    WHEN 'iteration' THEN coalesce(l.iteration_id, 'no iteration')
    ELSE error('group_by: ' || b || ' is none of api, trace, rank, iteration') END), ' | ') AS api,
  count(*) AS calls,
  round(sum(l.dur_ns) / 1e6, 3) AS total_ms,
  round(avg(l.dur_ns) / 1e3, 3) AS mean_us,
  round(quantile_cont(l.dur_ns, 0.95) / 1e3, 3) AS p95_us,
  round(max(l.dur_ns) / 1e3, 3) AS max_us,
  count(w.launch_id) AS launching,
  coalesce(sum(w.events), 0)::BIGINT AS gpu_events,
  round(avg(w.start_ns - l.start_ns) / 1e3, 3) AS mean_delay_us,
  round(quantile_cont(w.start_ns - l.start_ns, 0.95) / 1e3, 3) AS p95_delay_us,
  round(avg(w.start_ns - l.end_ns) / 1e3, 3) AS mean_queue_us,
  round(avg(greatest(w.start_ns - l.end_ns, 0)) FILTER (w.launch_id IS NOT NULL) / 1e3, 3) AS mean_wait_us,
  count(*) FILTER (w.gpu_ns < l.dur_ns) AS shorter_than_call,
  round(100.0 * count(*) FILTER (w.gpu_ns < l.dur_ns) / nullif(count(w.launch_id), 0), 2) AS shorter_pct
FROM launch_calls AS l
LEFT JOIN work AS w ON w.trace_id = l.trace_id AND w.launch_id = l.event_index
GROUP BY 1
ORDER BY sum(l.dur_ns) DESC, 1;
