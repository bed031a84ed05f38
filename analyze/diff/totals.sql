-- title: One side of a comparison in total
-- what it answers: How long are the GPUs of each selected trace busy, how long is its GPU work, and how long are its iterations?
-- columns and units:
--   trace_id      trace
--   busy_ns       length of the union of GPU work, summed over devices, ns
--   summed_ns     sum of the durations of GPU work, ns
--   gpu_events    GPU events
--   iterations    marked iterations, one per range; 0 where the trace marks none
--   iteration_ns  sum of their lengths on the CPU, ns
WITH busy AS (
  SELECT trace_id, sum(end_ns - start_ns)::BIGINT AS busy_ns FROM gpu_states WHERE compute + communication + memory > 0 GROUP BY ALL
),
work AS (
  SELECT trace_id, count(*) AS gpu_events, sum(dur_ns)::BIGINT AS summed_ns FROM gpu_work GROUP BY ALL
),
marks AS (
  SELECT r.trace_id, count(*) AS iterations, sum(r.dur_ns)::BIGINT AS iteration_ns
  FROM ranges AS r
  JOIN selected_traces AS t ON t.trace_id = r.trace_id
  WHERE r.iteration_id IS NOT NULL AND NOT r.on_gpu AND timed(r.start_ns, r.dur_ns, r.time_flag)
    AND r.iteration_producer IS NOT DISTINCT FROM t.iteration_producer
    AND (getvariable('iteration') IS NULL OR r.iteration_id = getvariable('iteration')::VARCHAR)
  GROUP BY ALL
)
SELECT t.trace_id, coalesce(b.busy_ns, 0) AS busy_ns, coalesce(w.summed_ns, 0) AS summed_ns, coalesce(w.gpu_events, 0) AS gpu_events,
  coalesce(m.iterations, 0) AS iterations, coalesce(m.iteration_ns, 0) AS iteration_ns
FROM selected_traces AS t
LEFT JOIN busy AS b ON b.trace_id = t.trace_id
LEFT JOIN work AS w ON w.trace_id = t.trace_id
LEFT JOIN marks AS m ON m.trace_id = t.trace_id
ORDER BY t.trace_id;
