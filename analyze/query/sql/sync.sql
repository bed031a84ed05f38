-- title: Who blocks on the GPU
-- what it answers: Which calls wait for the GPU, for how long, and inside which operator?
-- selects: run, rank, trace, iteration, from, to
-- needs: calls that wait for the GPU
-- columns and units:
--   run         run of the trace
--   rank        rank; null where nothing tells it
--   trace_id    trace
--   api         blocking call
--   op          innermost operator (of Nsight Systems: NVTX range) around it; null outside
--   calls       calls
--   blocked_ms  time that they took, ms
--   mean_us     mean, µs
--   max_us      longest, µs
--   share_pct   part of the wall time of the trace, %; above 100 where several threads wait
WITH blocking AS (
  SELECT * FROM launch_calls
  WHERE waits_for_gpu(api)
),
placed AS (
  SELECT b.*, s.event_index AS op_index
  FROM blocking AS b
  ASOF LEFT JOIN (SELECT * FROM host_segments('cpu_op') WHERE end_ns > start_ns OR end_ns IS NULL) AS s ON s.trace_id = b.trace_id AND s.pid = b.pid::VARCHAR AND s.tid = b.tid::VARCHAR AND s.start_ns <= b.start_ns
)
SELECT
  p.run, p.rank, p.trace_id, p.api, e.name AS op,
  count(*) AS calls,
  round(sum(p.dur_ns) / 1e6, 3) AS blocked_ms,
  round(avg(p.dur_ns) / 1e3, 3) AS mean_us,
  round(max(p.dur_ns) / 1e3, 3) AS max_us,
  round(100.0 * sum(p.dur_ns) / nullif(any_value(t.end_ns - t.start_ns), 0), 2) AS share_pct
FROM placed AS p
JOIN selected_traces AS t ON t.trace_id = p.trace_id
LEFT JOIN host_calls AS e ON e.trace_id = p.trace_id AND e.event_index = p.op_index AND e.category = 'cpu_op'
GROUP BY p.run, p.rank, p.trace_id, p.api, e.name
ORDER BY p.run, p.rank, p.trace_id, blocked_ms DESC, p.api, op;
