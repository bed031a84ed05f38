-- title: Launch queues
-- what it answers: How many launches wait on each stream, and how long is the queue full?
--   A launch joins the queue when its call starts and leaves it when its first GPU event starts. A graph launch counts
--   once. Only work that is linked to its launch takes part. Times are weighted: mean is over time, not over launches. --iteration,
--   --from and --to choose launches by the start of their call.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: GPU work that is linked to its launch
-- parameters:
--   full  length from which the queue counts as full; default 1024
-- columns and units:
--   run        run of the trace
--   rank       rank; null where nothing tells it
--   trace_id   trace
--   process    global ID of the process whose ordinals the devices are (Nsight Systems)
--   device     device ordinal
--   stream     stream
--   launches   launches
--   early      launches whose work starts before their call, by clocks that disagree: they never wait
--   max        longest queue, launches
--   mean       mean length over time, launches
--   empty_pct  time with an empty queue, %
--   full_ns    time with a full queue, ns
WITH waits AS (
  SELECT w.trace_id, w.run, w.rank, w.process, w.device, w.stream, any_value(l.start_ns) AS launched_ns, min(w.start_ns) AS start_ns
  FROM gpu_work_anytime AS w
  JOIN launches AS l ON l.trace_id = w.trace_id AND l.event_index = w.launch_id
  WHERE l.start_ns IS NOT NULL AND in_iteration(l.iteration_id) AND in_window(l.start_ns, w.trace_start_ns)
  GROUP BY w.trace_id, w.run, w.rank, w.process, w.device, w.stream, w.launch_id
),
points AS (
  SELECT trace_id, run, rank, process, device, stream, least(launched_ns, start_ns) AS moment, 1 AS d, launched_ns > start_ns AS early FROM waits
  UNION ALL
  SELECT trace_id, run, rank, process, device, stream, start_ns, -1, false FROM waits
),
steps AS (
  SELECT trace_id, run, rank, process, device, stream, moment, sum(d) AS d, count(*) FILTER (d > 0) AS launches, count(*) FILTER (early) AS early FROM points GROUP BY ALL
),
lengths AS (
  SELECT *, sum(d) OVER w AS length, coalesce(lead(moment) OVER w - moment, 0) AS ns
  FROM steps
  WINDOW w AS (PARTITION BY trace_id, process, device, stream ORDER BY moment)
)
SELECT
  run, rank, trace_id, process, device, stream,
  sum(launches)::BIGINT AS launches,
  sum(early)::BIGINT AS early,
  max(length)::BIGINT AS max,
  round(sum(length * ns) / nullif(sum(ns), 0), 3) AS mean,
  round(100.0 * coalesce(sum(ns) FILTER (length = 0), 0) / nullif(sum(ns), 0), 2) AS empty_pct,
  coalesce(sum(ns) FILTER (length >= coalesce(getvariable('full')::BIGINT, 1024)), 0)::BIGINT AS full_ns
FROM lengths
GROUP BY ALL
ORDER BY run, rank, trace_id, process, device, stream;
