-- title: Critical paths by what is on them
-- what it answers: What did the slowest iterations consist of?
-- columns and units:
--   run            run of the trace
--   rank           rank; null where nothing tells it
--   trace_id       trace
--   producer       who marked the iteration
--   iteration      its ID; null for the trace as a whole
--   path_ms        length of the path, ms
--   compute        GPU work that computes, ms
--   communication  collectives, ms
--   memory         copies and sets, ms
--   launch         from a call to the start of its work, ms
--   stream         gaps behind earlier work of the stream, ms
--   wait           gaps behind what an event wait names, ms
--   call           calls of the runtime, ms
--   sync           rests of calls behind the work that they wait for, ms
--   host           everything else on the CPU, ms
SELECT run, rank, trace_id, producer, iteration, any_value(path_ms) AS path_ms,
  round(coalesce(sum(total_ms) FILTER (what = 'compute'), 0), 6) AS compute,
  round(coalesce(sum(total_ms) FILTER (what = 'communication'), 0), 6) AS communication,
  round(coalesce(sum(total_ms) FILTER (what = 'memory'), 0), 6) AS memory,
  round(coalesce(sum(total_ms) FILTER (what = 'launch'), 0), 6) AS launch,
  round(coalesce(sum(total_ms) FILTER (what = 'stream'), 0), 6) AS stream,
  round(coalesce(sum(total_ms) FILTER (what = 'wait'), 0), 6) AS wait,
  round(coalesce(sum(total_ms) FILTER (what = 'call'), 0), 6) AS call,
  round(coalesce(sum(total_ms) FILTER (what = 'sync'), 0), 6) AS sync,
  round(coalesce(sum(total_ms) FILTER (what = 'host'), 0), 6) AS host
FROM report_critical_path
GROUP BY run, rank, trace_id, producer, iteration
ORDER BY path_ms DESC, run, rank, trace_id, iteration, producer;
