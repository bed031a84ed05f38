-- title: Chart of iterations
-- what it answers: How long did the iterations take? Runs with the most time in iterations come first, those with GPU work before others.
--   A trace with more iterations than report_points is thinned out: of each group of neighbours the slowest and the fastest stay.
-- parameters:
--   report_series  traces
--   report_points  iterations of each
-- columns and units:
--   run           run of the trace
--   rank          rank
--   trace_id      trace
--   producer      who marked the iterations
--   iterations    iterations before thinning out
--   nth           position in the trace, from 1
--   iteration     its ID
--   start_ms      start after the start of the trace, ms
--   wall_ms       length of the range on the CPU, ms
--   gpu_busy_ms   union of its GPU events, ms
WITH marked AS (
  SELECT run, trace_id, producer, count(*) AS iterations, sum(wall_ms) AS wall_ms, sum(gpu_busy_ms) > 0 AS works
  FROM report_iterations
  GROUP BY run, trace_id, producer
),
chosen AS (
  SELECT *, row_number() OVER (ORDER BY works DESC, run_ms DESC, run, producer, wall_ms DESC, trace_id) AS place
  FROM (SELECT *, sum(wall_ms) OVER (PARTITION BY run) AS run_ms FROM marked)
  QUALIFY place <= getvariable('report_series')
),
numbered AS (
  SELECT i.run, i.rank, i.trace_id, i.producer, c.iterations, i.iteration, i.start_ms, i.wall_ms, i.gpu_busy_ms,
    row_number() OVER (PARTITION BY i.trace_id, i.producer ORDER BY i.start_ms, i.iteration, i.wall_ms) AS nth
  FROM report_iterations AS i
  JOIN chosen AS c ON c.trace_id = i.trace_id AND c.producer IS NOT DISTINCT FROM i.producer
),
grouped AS (
  SELECT *, (nth - 1) * (getvariable('report_points') // 2) // iterations AS neighbours FROM numbered
)
SELECT run, rank, trace_id, producer, iterations, nth, iteration, start_ms, wall_ms, gpu_busy_ms
FROM grouped
QUALIFY iterations <= getvariable('report_points')
  OR row_number() OVER (PARTITION BY trace_id, producer, neighbours ORDER BY wall_ms DESC, nth) = 1
  OR row_number() OVER (PARTITION BY trace_id, producer, neighbours ORDER BY wall_ms, nth) = 1
ORDER BY run, rank, trace_id, producer, nth;
