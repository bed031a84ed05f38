-- title: GPU busy fraction
-- what it answers: How much of the time was each GPU of each trace busy, from its first to its last event?
-- columns and units:
--   run        run of the trace
--   rank       rank; null where nothing tells it
--   trace_id   trace
--   device     device ordinal
--   gpu        product name, where the trace tells it
--   gpu_events GPU events on the device
--   excluded   events left out of the times, because their own cannot be trusted
--   busy_ns    time with at least one event running, ns
--   window_ns  first start to last end, ns
--   busy_pct   busy_ns of window_ns, %
--   overlap    summed durations over busy time; above 1 where streams overlap
SELECT
  t.run,
  t.rank,
  d.trace_id,
  d.ordinal AS device,
  d.name AS gpu,
  d.gpu_events,
  d.excluded_events AS excluded,
  d.busy_ns,
  d.last_ns - d.first_ns AS window_ns,
  round(100.0 * d.busy_ns / nullif(d.last_ns - d.first_ns, 0), 2) AS busy_pct,
  round(d.summed_ns / nullif(d.busy_ns, 0), 3) AS overlap
FROM devices AS d
JOIN traces AS t USING (trace_id)
WHERE d.gpu_events > 0
ORDER BY t.run, t.rank, d.trace_id, d.ordinal;
