-- title: Memory of the allocator
-- what it answers: How much memory did each device have allocated and reserved at most, and when?
-- needs: memory records of PyTorch (profile_memory), which Nsight Systems does not write
-- columns and units:
--   run              run of the trace
--   rank             rank; null where nothing tells it
--   trace_id         trace
--   device           device ordinal; -1 is the CPU
--   device_type      0 CPU, 1 CUDA, …
--   allocations      allocations recorded
--   frees            frees recorded
--   allocated_bytes  bytes allocated by them
--   peak_allocated_bytes  most that was allocated
--   peak_at_ms       when, after the start of the trace, ms
--   peak_reserved_bytes   most that was reserved
--   end_allocated_bytes   allocated behind the last record
SELECT
  t.run, t.rank, i.trace_id, i.device_id AS device, i.device_type,
  count(*) FILTER (i.bytes > 0) AS allocations,
  count(*) FILTER (i.bytes < 0) AS frees,
  coalesce(sum(i.bytes) FILTER (i.bytes > 0), 0)::BIGINT AS allocated_bytes,
  max(i.total_allocated_bytes) AS peak_allocated_bytes,
  round((min_by(i.start_ns, i.start_ns) FILTER (i.total_allocated_bytes = m.peak) - any_value(t.start_ns)) / 1e6, 3) AS peak_at_ms,
  max(i.total_reserved_bytes) AS peak_reserved_bytes,
  max_by(i.total_allocated_bytes, i.event_index) AS end_allocated_bytes
FROM instants AS i
JOIN selected_traces AS t ON t.trace_id = i.trace_id
JOIN (SELECT trace_id, device_id, device_type, max(total_allocated_bytes) AS peak FROM instants WHERE name = '[memory]' GROUP BY ALL) AS m
  ON m.trace_id = i.trace_id AND m.device_id IS NOT DISTINCT FROM i.device_id AND m.device_type IS NOT DISTINCT FROM i.device_type
WHERE i.name = '[memory]' AND in_window(i.start_ns, t.start_ns)
  AND (getvariable('device') IS NULL OR i.device_id = getvariable('device')::BIGINT)
GROUP BY t.run, t.rank, i.trace_id, i.device_id, i.device_type
ORDER BY t.run, t.rank, i.trace_id, i.device_type, i.device_id;
