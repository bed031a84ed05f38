-- title: Iterations
-- what it answers: How long did each marked iteration take, how busy did it keep the GPU, and how many launches did it make?
--   GPU work belongs to the iteration in which it was launched, wherever it ran. An iteration with several ranges (several
--   threads, or an ID used twice) is a row per range.
-- selects: run, rank, trace, device, iteration, from, to
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
WITH gpu AS (
  SELECT trace_id, iteration_range, count(*) AS events, sum(dur_ns) AS summed_ns, max(end_ns) - min(start_ns) AS span_ns, busy_ns(start_ns, end_ns) AS busy_ns
  FROM gpu_work
  WHERE iteration_range IS NOT NULL
  GROUP BY ALL
),
calls AS (
  SELECT trace_id, iteration_range, count(*) AS launches FROM launch_calls WHERE iteration_range IS NOT NULL GROUP BY ALL
),
marks AS ( -- the median is over all of the trace, whatever of it is selected
  SELECT t.run, t.rank, t.start_ns AS trace_start_ns, r.trace_id, r.event_index, r.iteration_producer, r.iteration_id, r.start_ns, r.dur_ns,
    r.context_requests, r.context_tokens, r.generation_requests, r.generation_tokens, median(r.dur_ns) OVER (PARTITION BY r.trace_id, r.iteration_producer) AS median_ns
  FROM ranges AS r
  JOIN selected_traces AS t ON t.trace_id = r.trace_id
  WHERE r.iteration_id IS NOT NULL AND NOT r.on_gpu AND timed(r.start_ns, r.dur_ns, r.time_flag)
)
SELECT
  m.run, m.rank, m.trace_id,
  m.iteration_producer AS producer,
  m.iteration_id AS iteration,
  round((m.start_ns - m.trace_start_ns) / 1e6, 3) AS start_ms,
  round(m.dur_ns / 1e6, 3) AS wall_ms,
  coalesce(g.events, 0) AS gpu_events,
  coalesce(c.launches, 0) AS launches,
  round(coalesce(g.busy_ns, 0) / 1e6, 3) AS gpu_busy_ms,
  round(coalesce(g.span_ns, 0) / 1e6, 3) AS gpu_span_ms,
  round(coalesce(g.summed_ns, 0) / 1e6, 3) AS gpu_summed_ms,
  round(m.dur_ns / nullif(m.median_ns, 0), 3) AS slowdown,
  m.context_requests, m.context_tokens, m.generation_requests, m.generation_tokens
FROM marks AS m
LEFT JOIN gpu AS g ON g.trace_id = m.trace_id AND g.iteration_range = m.event_index
LEFT JOIN calls AS c ON c.trace_id = m.trace_id AND c.iteration_range = m.event_index
WHERE in_window(m.start_ns, m.trace_start_ns)
  AND (getvariable('iteration') IS NULL OR m.iteration_id = getvariable('iteration')::VARCHAR)
ORDER BY m.run, m.rank, m.trace_id, m.start_ns, m.event_index;
