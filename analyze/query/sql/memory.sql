-- title: Memory of the allocator
-- what it answers: How much memory did each device have allocated and reserved at most, and when?
-- selects: run, rank, trace, device, from, to
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
--   peak_at_ms       when first, after the start of the trace, ms
--   peak_reserved_bytes   most that was reserved
--   end_allocated_bytes   allocated behind the last record in time
WITH records AS (
  SELECT t.run, t.rank, t.start_ns AS trace_start_ns, i.*,
    max(i.total_allocated_bytes) OVER (PARTITION BY i.trace_id, i.device_id, i.device_type) AS peak
  FROM instants AS i
  JOIN selected_traces AS t ON t.trace_id = i.trace_id
  WHERE i.name = '[memory]' AND in_window(i.start_ns, t.start_ns)
    AND (getvariable('device') IS NULL OR i.device_id = getvariable('device')::BIGINT)
)
SELECT
  run, rank, trace_id, device_id AS device, device_type,
  count(*) FILTER (bytes > 0) AS allocations,
  count(*) FILTER (bytes < 0) AS frees,
  coalesce(sum(bytes) FILTER (bytes > 0), 0)::BIGINT AS allocated_bytes,
  any_value(peak) AS peak_allocated_bytes,
  round(min(start_ns - trace_start_ns) FILTER (total_allocated_bytes = peak) / 1e6, 3) AS peak_at_ms,
  max(total_reserved_bytes) AS peak_reserved_bytes,
  max_by(total_allocated_bytes, (start_ns, event_index)) AS end_allocated_bytes
FROM records
GROUP BY run, rank, trace_id, device_id, device_type
ORDER BY run, rank, trace_id, device_type, device_id;
