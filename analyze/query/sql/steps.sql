-- title: Serving steps
-- what it answers: How long do the steps of a serving engine take, by phase and batch size?
--   A step is a range whose name tells its phase, as vLLM and SGLang write it. prefill (extend): only prompts; decode:
--   only generation; mixed: both. A mark inside another says the same again and is no step.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: marks of a serving engine that tell the phase
-- columns and units:
--   run           run of the trace
--   rank          rank; null where nothing tells it
--   trace_id      trace
--   phase         prefill, decode or mixed
--   requests      requests in the batch
--   steps         steps
--   tokens        mean tokens per step
--   mean_wall_ms  mean length on the CPU, ms
--   p95_wall_ms   95th percentile, ms
--   mean_gpu_ms   mean time with a GPU event of the step running, over all devices, ms; null where none of the trace has any
--   gpu_us_per_token  GPU busy time over tokens, µs
WITH named AS ( -- what the marks say: columns of vLLM's, and the text of SGLang's and the like
  SELECT t.run, t.rank, r.trace_id, t.start_ns AS trace_start_ns, r.iteration_id, r.event_index, r.pid, r.tid, r.start_ns, r.start_ns + r.dur_ns AS end_ns, r.dur_ns,
    CASE
      WHEN r.context_requests > 0 AND r.generation_requests > 0 OR regexp_matches(r.iteration_id, '(?i)\bmixed\b') THEN 'mixed'
      WHEN r.context_requests > 0 OR regexp_matches(r.iteration_id, '(?i)\b(extend|prefill)') THEN 'prefill'
      WHEN r.generation_requests > 0 OR regexp_matches(r.iteration_id, '(?i)\bdecode') THEN 'decode' END AS phase,
    coalesce(r.context_requests + r.generation_requests, try_cast(regexp_extract(r.iteration_id, '(?i)\b(bs|batch(_size)?)[=: ](\d+)', 3) AS BIGINT)) AS requests,
    coalesce(
      r.context_tokens + r.generation_tokens,
      try_cast(regexp_extract(r.iteration_id, 'context_\d+\(sq(\d+)', 1) AS BIGINT) + try_cast(regexp_extract(r.iteration_id, 'generation_\d+\(sq(\d+)', 1) AS BIGINT),
      try_cast(regexp_extract(r.iteration_id, '(?i)\btok(en)?s?[=: ](\d+)', 2) AS BIGINT)) AS tokens
  FROM ranges AS r
  JOIN selected_traces AS t ON t.trace_id = r.trace_id
  WHERE NOT r.on_gpu AND r.iteration_id IS NOT NULL AND timed(r.start_ns, r.dur_ns, r.time_flag)
),
marks AS ( -- what is selected counts afterwards: a mark alone is no more a step than it is among others
  SELECT * FROM named
  WHERE phase IS NOT NULL
  QUALIFY in_window(start_ns, trace_start_ns) AND (getvariable('iteration') IS NULL OR iteration_id = getvariable('iteration')::VARCHAR)
    AND start_ns >= coalesce(max(end_ns) OVER (PARTITION BY trace_id, pid, tid ORDER BY start_ns, end_ns DESC, event_index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)
),
gpu AS (
  SELECT trace_id, iteration_range, busy_ns(start_ns, end_ns) AS busy_ns FROM gpu_work WHERE iteration_range IS NOT NULL GROUP BY ALL
),
marked AS (
  -- A decode step makes one token per request, where the mark counts none.
  SELECT m.*, coalesce(m.tokens, CASE WHEN m.phase = 'decode' THEN m.requests END) AS counted,
    CASE WHEN count(g.busy_ns) OVER (PARTITION BY m.trace_id) > 0 THEN coalesce(g.busy_ns, 0) END AS busy_ns -- or the GPU work is of other iterations
  FROM marks AS m
  LEFT JOIN gpu AS g ON g.trace_id = m.trace_id AND g.iteration_range = m.event_index
)
SELECT
  run, rank, trace_id, phase, requests,
  count(*) AS steps,
  round(avg(counted), 2) AS tokens,
  round(avg(dur_ns) / 1e6, 3) AS mean_wall_ms,
  round(quantile_cont(dur_ns, 0.95) / 1e6, 3) AS p95_wall_ms,
  round(avg(busy_ns) / 1e6, 3) AS mean_gpu_ms,
  round(sum(busy_ns) / nullif(sum(counted), 0) / 1e3, 3) AS gpu_us_per_token
FROM marked
GROUP BY ALL
ORDER BY run, rank, trace_id, phase, requests;
