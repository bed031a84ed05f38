-- title: Communication hidden by computation
-- what it answers: How much of the time that each GPU communicates does it compute as well?
--   The lengths of the union of collectives, and of its intersection with the union of other kernels.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: collectives among the kernels
-- columns and units:
--   run               run of the trace
--   rank              rank; null where nothing tells it
--   trace_id          trace
--   process           global ID of the process whose ordinals the devices are (Nsight Systems)
--   device            device ordinal
--   communication_ns  time with a collective running, ns
--   hidden_ns         part of it with computing at the same time, ns
--   exposed_ns        part of it without, ns
--   hidden_pct        hidden_ns of communication_ns, %
SELECT
  t.run,
  t.rank,
  s.trace_id,
  s.process,
  s.device,
  sum(s.end_ns - s.start_ns)::BIGINT AS communication_ns,
  coalesce(sum(s.end_ns - s.start_ns) FILTER (s.compute > 0), 0)::BIGINT AS hidden_ns,
  coalesce(sum(s.end_ns - s.start_ns) FILTER (s.compute = 0), 0)::BIGINT AS exposed_ns,
  round(100.0 * coalesce(sum(s.end_ns - s.start_ns) FILTER (s.compute > 0), 0) / nullif(sum(s.end_ns - s.start_ns), 0), 2) AS hidden_pct
FROM gpu_states AS s
JOIN selected_traces AS t ON t.trace_id = s.trace_id
WHERE s.communication > 0
GROUP BY ALL
ORDER BY t.run, t.rank, s.trace_id, s.process, s.device;
