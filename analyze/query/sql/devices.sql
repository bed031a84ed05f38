-- title: GPU busy fraction and what it was busy with
-- what it answers: How much of the time was each GPU of each trace busy, from its first to its last event, and how much of it was computing, communicating or moving memory?
--   All times are lengths of unions of intervals, so that nothing counts twice: exposed_communication_ns is the time with
--   communication and no computing, exposed_memory_ns the time with copies or sets and neither of the two.
-- selects: run, rank, trace, device, iteration, from, to
-- columns and units:
--   run                       run of the trace
--   rank                      rank; null where nothing tells it
--   trace_id                  trace
--   process                   global ID of the process whose ordinals the devices are (Nsight Systems)
--   device                    device ordinal
--   gpu                       product name, where the trace tells it
--   gpu_events                GPU events whose times count
--   excluded                  events of the device, in all of the trace, left out of the times, because their own cannot be trusted
--   window_ns                 first start to last end, ns
--   busy_ns                   time with at least one event running, ns
--   idle_ns                   window_ns without busy_ns, ns
--   busy_pct                  busy_ns of window_ns, %
--   compute_ns                time with a kernel running that is no collective, ns
--   communication_ns          time with a collective running, ns
--   memory_ns                 time with a copy or set running, ns
--   exposed_communication_ns  communication without computing, ns
--   exposed_memory_ns         copies and sets alone, ns
--   overlap                   summed durations over busy time; above 1 where streams overlap
WITH states AS (
  SELECT
    trace_id, process, device,
    coalesce(sum(end_ns - start_ns) FILTER (compute + communication + memory > 0), 0)::BIGINT AS busy_ns,
    coalesce(sum(end_ns - start_ns) FILTER (compute > 0), 0)::BIGINT AS compute_ns,
    coalesce(sum(end_ns - start_ns) FILTER (communication > 0), 0)::BIGINT AS communication_ns,
    coalesce(sum(end_ns - start_ns) FILTER (memory > 0), 0)::BIGINT AS memory_ns,
    coalesce(sum(end_ns - start_ns) FILTER (communication > 0 AND compute = 0), 0)::BIGINT AS exposed_communication_ns,
    coalesce(sum(end_ns - start_ns) FILTER (memory > 0 AND compute = 0 AND communication = 0), 0)::BIGINT AS exposed_memory_ns
  FROM gpu_states
  GROUP BY ALL
),
work AS (
  SELECT trace_id, any_value(run) AS run, any_value(rank) AS rank, process, device, count(*) AS gpu_events,
    sum(dur_ns)::BIGINT AS summed_ns, max(end_ns) - min(start_ns) AS window_ns
  FROM gpu_work
  GROUP BY trace_id, process, device
)
SELECT
  w.run,
  w.rank,
  w.trace_id,
  w.process,
  w.device,
  d.name AS gpu,
  w.gpu_events,
  d.excluded_events AS excluded,
  w.window_ns,
  coalesce(s.busy_ns, 0) AS busy_ns,
  w.window_ns - coalesce(s.busy_ns, 0) AS idle_ns,
  round(100.0 * s.busy_ns / nullif(w.window_ns, 0), 2) AS busy_pct,
  coalesce(s.compute_ns, 0) AS compute_ns,
  coalesce(s.communication_ns, 0) AS communication_ns,
  coalesce(s.memory_ns, 0) AS memory_ns,
  coalesce(s.exposed_communication_ns, 0) AS exposed_communication_ns,
  coalesce(s.exposed_memory_ns, 0) AS exposed_memory_ns,
  round(w.summed_ns / nullif(s.busy_ns, 0), 3) AS overlap
FROM work AS w
LEFT JOIN states AS s
  ON s.trace_id = w.trace_id AND s.process IS NOT DISTINCT FROM w.process AND s.device IS NOT DISTINCT FROM w.device
LEFT JOIN devices AS d
  ON d.trace_id = w.trace_id AND d.ordinal IS NOT DISTINCT FROM w.device AND d.global_pid IS NOT DISTINCT FROM w.process
ORDER BY w.run, w.rank, w.trace_id, w.process, w.device;
