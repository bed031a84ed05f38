-- title: One side of a comparison by kernel
-- what it answers: How often and how long does each kernel, copy and set run in each selected trace?
-- columns and units:
--   trace_id  trace
--   kind      kernel, copy or set
--   name      name as the profiler wrote it
--   shape     grid and block of a kernel; bytes do not tell copies apart
--   class     compute, communication or memory
--   count     events
--   total_ns  sum of their durations, ns
SELECT
  trace_id,
  CASE kind WHEN 'gpu_memcpy' THEN 'copy' WHEN 'gpu_memset' THEN 'set' ELSE 'kernel' END AS kind,
  coalesce(name, '') AS name,
  coalesce(CASE WHEN kind = 'gpu_kernel' AND grid_x IS NOT NULL THEN format('[{}, {}, {}] x [{}, {}, {}]', grid_x, grid_y, grid_z, block_x, block_y, block_z) END, '') AS shape,
  class,
  count(*) AS count,
  sum(dur_ns)::BIGINT AS total_ns
FROM gpu_work
GROUP BY ALL
ORDER BY ALL;
