-- title: Iterations whose critical path is walked
-- what it answers: Which iterations are looked at closely?
--   The slowest iteration with GPU work of each trace, or a trace without iterations as a whole, the slowest first. The path of a trace
--   with very many events is not walked here: tracelake analyze critical-path LAKE --trace ID --iteration ID does it.
-- columns and units:
--   run        run of the trace
--   rank       rank; null where nothing tells it
--   trace_id   trace
--   producer   who marked its slowest iteration
--   iteration  its ID; null for the trace as a whole
--   wall_ms    how long that took, ms
--   events     events of the trace
--   walked     whether the path is walked; not where the trace is too large
--   traces     traces with linked GPU work
--   too_large  how many of them are too large
WITH slowest AS (
  SELECT trace_id, max_by({'producer': producer, 'iteration': iteration}, (wall_ms, -start_ms, producer, iteration)) AS it, max(wall_ms) AS wall_ms FROM report_iterations WHERE wall_ms IS NOT NULL AND gpu_events > 0 GROUP BY ALL
),
candidates AS (
  SELECT t.run, t.rank, t.trace_id, s.it.producer AS producer, s.it.iteration AS iteration, coalesce(s.wall_ms, (t.end_ns - t.start_ns) / 1e6) AS wall_ms, t.events,
    t.events <= getvariable('report_path_events')::BIGINT AS walked
  FROM selected_traces AS t
  LEFT JOIN slowest AS s USING (trace_id)
  WHERE t.linked_gpu_events > 0
),
counted AS (
  SELECT *, count(*) OVER () AS traces, count(*) FILTER (NOT walked) OVER () AS too_large,
    row_number() OVER (PARTITION BY walked ORDER BY iteration IS NULL, wall_ms DESC, run, rank, trace_id) AS place
  FROM candidates
)
SELECT run, rank, trace_id, producer, iteration, round(wall_ms, 3) AS wall_ms, events, walked, traces, too_large
FROM counted
WHERE place <= getvariable('report_paths')::BIGINT
ORDER BY NOT walked, place;
