-- title: Busiest kernels
-- what it answers: Which kernels take most of the GPU time, over all traces of the dataset?
--   Kernels whose recorded times cannot be trusted are left out: see time_flag.
-- columns and units:
--   name       kernel as the profiler named it
--   kernels    kernels that ran
--   total_ns   sum of their durations, ns
--   total_ms   the same in ms
--   mean_us    mean duration, µs
--   share_pct  part of the summed time of all kernels, %
SELECT
  name,
  count(*) AS kernels,
  sum(dur_ns)::BIGINT AS total_ns,
  round(sum(dur_ns) / 1e6, 3) AS total_ms,
  round(avg(dur_ns) / 1e3, 3) AS mean_us,
  round(100.0 * sum(dur_ns) / sum(sum(dur_ns)) OVER (), 2) AS share_pct
FROM gpu_events
WHERE kind = 'gpu_kernel'
  AND dur_ns >= 0
  AND (time_flag IS NULL OR time_flag = 'overruns_next')
GROUP BY name
ORDER BY total_ns DESC, name
LIMIT 25;
