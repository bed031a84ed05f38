-- title: Copies and sets
-- what it answers: How much memory was copied or set, between which kinds of memory, and how fast?
-- selects: run, rank, trace, device, iteration, from, to
-- needs: copies or sets
-- columns and units:
--   run        run of the trace
--   rank       rank; null where nothing tells it
--   trace_id   trace
--   process    global ID of the process whose ordinals the devices are (Nsight Systems)
--   device     device ordinal
--   kind       gpu_memcpy or gpu_memset
--   copy_kind  HtoD, DtoH, DtoD, PtoP, …; null for sets
--   from       memory copied from: Pageable, Pinned, Device, …
--   to         memory copied to, or set
--   events     copies or sets
--   bytes      bytes, where the trace has them
--   total_us   sum of their durations, µs
--   mean_us    mean duration, µs
--   max_us     longest, µs
--   gb_per_s   bytes over time, GB/s (1e9 bytes), of the events that have both
SELECT
  run, rank, trace_id, process, device, kind, copy_kind, src_memory AS "from", dst_memory AS "to",
  count(*) AS events,
  sum(bytes)::BIGINT AS bytes,
  round(sum(dur_ns) / 1e3, 3) AS total_us,
  round(avg(dur_ns) / 1e3, 3) AS mean_us,
  round(max(dur_ns) / 1e3, 3) AS max_us,
  round(sum(bytes) FILTER (dur_ns > 0) / nullif(sum(dur_ns) FILTER (bytes IS NOT NULL), 0), 3) AS gb_per_s
FROM gpu_work
WHERE kind IN ('gpu_memcpy', 'gpu_memset')
GROUP BY ALL
ORDER BY run, rank, trace_id, total_us DESC, process, device, kind, copy_kind, "from", "to";
