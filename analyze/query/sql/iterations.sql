-- title: Iterations
-- what it answers: How long did each marked iteration take, how busy did it keep the GPU, and how many launches did it make?
--   GPU work belongs to the iteration in which it was launched, wherever it ran. An iteration with several ranges (several
--   threads, or an ID used twice) is a row per range.
-- needs: marked iterations (ProfilerStep, the marks of vLLM and SGLang, or --range-pattern of convert)
-- columns and units:
--   run                 run of the trace
--   rank                rank; null where nothing tells it
--   trace_id            trace
--   producer            who marked it
--   iteration           its ID
--   start_ms            start of the range after the start of the trace, ms
--   wall_ms             length of the range on the CPU, ms
--   gpu_events          GPU events launched in it
--   launches            calls of the runtime or driver in it
--   gpu_busy_ms         length of the union of its GPU events, over all devices, ms
--   gpu_span_ms         first start to last end of its GPU events, ms
--   gpu_summed_ms       sum of their durations, ms
--   slowdown            wall_ms over the median of the same producer in the trace
--   context_requests    requests in prefill, where the mark tells
--   context_tokens      tokens in prefill
--   generation_requests requests in decode
--   generation_tokens   tokens in decode
WITH ordered AS (
  SELECT trace_id, iteration_range, process, device, start_ns, end_ns, dur_ns,
    max(end_ns) OVER (PARTITION BY trace_id, iteration_range, process, device ORDER BY start_ns, event_index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
  FROM gpu_work
  WHERE iteration_range IS NOT NULL
),
gpu AS (
  SELECT trace_id, iteration_range, count(*) AS events, sum(dur_ns) AS summed_ns, max(end_ns) - min(start_ns) AS span_ns,
    sum(greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0)) AS busy_ns
  FROM ordered
  GROUP BY ALL
),
calls AS (
  SELECT trace_id, iteration_range, count(*) AS launches FROM launch_calls WHERE iteration_range IS NOT NULL GROUP BY ALL
)
SELECT
  t.run, t.rank, r.trace_id,
  r.iteration_producer AS producer,
  r.iteration_id AS iteration,
  round((r.start_ns - t.start_ns) / 1e6, 3) AS start_ms,
  round(r.dur_ns / 1e6, 3) AS wall_ms,
  coalesce(g.events, 0) AS gpu_events,
  coalesce(c.launches, 0) AS launches,
  round(coalesce(g.busy_ns, 0) / 1e6, 3) AS gpu_busy_ms,
  round(coalesce(g.span_ns, 0) / 1e6, 3) AS gpu_span_ms,
  round(coalesce(g.summed_ns, 0) / 1e6, 3) AS gpu_summed_ms,
  round(r.dur_ns / nullif(median(r.dur_ns) OVER (PARTITION BY r.trace_id, r.iteration_producer), 0), 3) AS slowdown,
  r.context_requests, r.context_tokens, r.generation_requests, r.generation_tokens
FROM ranges AS r
JOIN selected_traces AS t ON t.trace_id = r.trace_id
LEFT JOIN gpu AS g ON g.trace_id = r.trace_id AND g.iteration_range = r.event_index
LEFT JOIN calls AS c ON c.trace_id = r.trace_id AND c.iteration_range = r.event_index
WHERE r.iteration_id IS NOT NULL AND NOT r.on_gpu AND timed(r.start_ns, r.dur_ns, r.time_flag) AND in_window(r.start_ns, t.start_ns)
  AND (getvariable('iteration') IS NULL OR r.iteration_id = getvariable('iteration')::VARCHAR)
ORDER BY t.run, t.rank, r.trace_id, r.start_ns, r.event_index;
