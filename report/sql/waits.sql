-- title: Why GPUs wait
-- what it answers: In which gaps of a device was nothing running, and what was it waiting for?
--   host: the next work was launched after the gap began. graph: inside one graph launch. short: shorter than the launch
--   of a kernel explains. unknown: the next work is not linked to its launch. other: the rest.
-- columns and units:
--   run        run of the trace
--   rank       rank; null where nothing tells it
--   trace_id   trace
--   process    global ID of the process whose ordinals the devices are (Nsight Systems)
--   device     device ordinal
--   reason     host, graph, short, other or unknown
--   gaps       gaps
--   idle_ns    their summed length, ns
--   share_pct  part of the idle time of the device, %
--   mean_us    mean length, µs
--   max_us     longest, µs
-- Rows of idle for a device as a whole come before those of its streams, and add up to its idle time; those of a stream
-- without a number look the same.
SELECT i.run, i.rank, i.trace_id, i.process, i.device, i.reason, i.gaps, i.idle_ns, i.share_pct, i.mean_us, i.max_us
FROM report_idle AS i
JOIN report_devices AS d ON d.trace_id = i.trace_id AND d.process IS NOT DISTINCT FROM i.process AND d.device IS NOT DISTINCT FROM i.device
WHERE i.stream IS NULL
QUALIFY sum(i.idle_ns) OVER (PARTITION BY i.trace_id, i.process, i.device ORDER BY i.rowid) <= d.idle_ns
ORDER BY i.run, i.rank, i.trace_id, i.process, i.device, i.idle_ns DESC, i.reason;
