-- title: Busiest kernels
-- what it answers: Which kernels take most of the GPU time, over all selected traces?
--   Events whose recorded times cannot be trusted are left out: see time_flag. SET VARIABLE group_by to class, kind, stream,
--   shape (grid and block), trace, rank, iteration or device (of a process, where ordinals count within it) groups by that
--   instead of the name, or by name+shape and the like.
-- selects: run, rank, trace, device, iteration, from, to
-- parameters:
--   group_by  name (the default), class, kind, stream, shape, trace, rank, iteration, device, or several joined by +
--   kinds     kernels (the default) or all, which adds copies and sets; grouped by class or kind it is all by default
--   top       rows; default 25
-- columns and units:
--   name       kernel as the profiler named it, or what else group_by says
--   class      compute, communication or memory; null where a group has several
--   events     events
--   total_ns   sum of their durations, ns
--   total_ms   the same in ms
--   mean_us    mean duration, µs
--   min_us     shortest, µs
--   p50_us     median, µs
--   p95_us     95th percentile, µs
--   max_us     longest, µs
--   stddev_us  standard deviation, µs
--   share_pct  part of the summed time of all that is grouped, %
WITH keyed AS (
  SELECT
    array_to_string(list_transform(string_split(coalesce(getvariable('group_by')::VARCHAR, 'name'), '+'), lambda b: CASE b
      WHEN 'name' THEN name
      WHEN 'class' THEN class
      WHEN 'kind' THEN kind
      WHEN 'stream' THEN 'stream ' || coalesce(stream::VARCHAR, '?')
      WHEN 'device' THEN coalesce('process ' || process::VARCHAR || ' ', '') || 'device ' || coalesce(device::VARCHAR, '?')
      WHEN 'trace' THEN trace_id
      WHEN 'rank' THEN 'rank ' || coalesce(rank::VARCHAR, '?')
      WHEN 'iteration' THEN coalesce(iteration_id, 'no iteration')
      WHEN 'shape' THEN coalesce(format('[{}, {}, {}] x [{}, {}, {}]', grid_x, grid_y, grid_z, block_x, block_y, block_z), 'no shape')
      ELSE error('group_by: ' || b || ' is none of name, class, kind, stream, shape, trace, rank, iteration, device') END), ' | ') AS name,
    class, dur_ns
  FROM gpu_work
  WHERE CASE coalesce(getvariable('kinds')::VARCHAR, CASE WHEN regexp_matches(getvariable('group_by')::VARCHAR, 'class|kind') THEN 'all' END, 'kernels')
    WHEN 'all' THEN true WHEN 'kernels' THEN kind IN ('gpu_kernel', 'gpu_graph') ELSE error('kinds: ' || getvariable('kinds') || ' is none of kernels, all') END
)
SELECT
  name,
  CASE WHEN count(DISTINCT class) = 1 THEN any_value(class) END AS class,
  count(*) AS events,
  sum(dur_ns)::BIGINT AS total_ns,
  round(sum(dur_ns) / 1e6, 3) AS total_ms,
  round(avg(dur_ns) / 1e3, 3) AS mean_us,
  round(min(dur_ns) / 1e3, 3) AS min_us,
  round(quantile_cont(dur_ns, 0.5) / 1e3, 3) AS p50_us,
  round(quantile_cont(dur_ns, 0.95) / 1e3, 3) AS p95_us,
  round(max(dur_ns) / 1e3, 3) AS max_us,
  round(stddev_samp(dur_ns) / 1e3, 3) AS stddev_us,
  round(100.0 * sum(dur_ns) / sum(sum(dur_ns)) OVER (), 2) AS share_pct
FROM keyed
GROUP BY name
ORDER BY total_ns DESC, name
LIMIT coalesce(getvariable('top')::BIGINT, 25);
