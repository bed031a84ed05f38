-- title: Lanes of the timeline
-- what it answers: Which streams of which devices are drawn, and how finely?
--   The runs with the largest summed GPU time come first, of each its busiest devices, of these the busiest streams. A device with few events is
--   drawn event by event (cell_ns is 0); of the others, events of a stream and a class that start in the same cell_ns become
--   one box.
-- parameters:
--   report_devices  devices at most
--   report_lanes    streams of a device at most
--   report_boxes    boxes of all devices at most
--   report_per_cell boxes that a cell can have
-- columns and units:
--   place         order of the devices in the timeline
--   run           run of the trace
--   rank          rank
--   trace_id      trace
--   process       global ID of the process (Nsight Systems)
--   device        device ordinal
--   gpu           product name
--   stream        stream
--   events        GPU events on the stream
--   first_ns      first start on the device after the start of the trace, ns
--   last_ns       last end on the device after the start of the trace, ns
--   offset_ns     start of the trace after the earliest one of its run, where the clocks can be compared, ns
--   device_events GPU events on the device
--   streams       streams of the device
--   devices       devices with GPU work
--   cell_ns       width of a cell, ns; 0 where every event is drawn
CREATE OR REPLACE TEMP TABLE report_lanes AS
WITH streams AS (
  SELECT trace_id, process, device, stream, any_value(run) AS run, any_value(rank) AS rank, any_value(trace_start_ns) AS trace_start_ns,
    count(*) AS events, min(start_ns) AS first_ns, max(end_ns) AS last_ns, sum(dur_ns) AS summed_ns,
    row_number() OVER (PARTITION BY trace_id, process, device ORDER BY sum(dur_ns) DESC, stream) AS nth
  FROM gpu_work
  GROUP BY trace_id, process, device, stream
),
totals AS (
  SELECT trace_id, process, device, any_value(run) AS run, sum(summed_ns) AS summed_ns, sum(events)::BIGINT AS device_events, min(first_ns) AS first_ns, max(last_ns) AS last_ns, count(*) AS streams
  FROM streams
  GROUP BY trace_id, process, device
),
ranked AS (
  SELECT *, count(*) OVER () AS devices,
    row_number() OVER (ORDER BY run_ns DESC, run, summed_ns DESC, trace_id, process, device) AS busiest
  FROM (SELECT *, sum(summed_ns) OVER (PARTITION BY run) AS run_ns FROM totals)
),
drawn AS (
  SELECT *, getvariable('report_boxes') // least(devices, getvariable('report_devices')) AS budget FROM ranked
  WHERE busiest <= getvariable('report_devices')
),
clocks AS (
  SELECT trace_id, CASE WHEN bool_and(clock = 'epoch') OVER (PARTITION BY run) THEN start_ns - min(start_ns) OVER (PARTITION BY run) END AS offset_ns
  FROM selected_traces
)
SELECT
  dense_rank() OVER (ORDER BY s.run, s.rank, s.trace_id, s.process, s.device) AS place,
  s.run, s.rank, s.trace_id, s.process, s.device, g.name AS gpu, s.stream, s.events,
  d.first_ns - s.trace_start_ns AS first_ns, d.last_ns - s.trace_start_ns AS last_ns, c.offset_ns,
  d.device_events, d.streams, d.devices,
  CASE WHEN d.device_events <= d.budget THEN 0
    ELSE greatest((d.last_ns - d.first_ns) // greatest(d.budget // (getvariable('report_per_cell') * least(d.streams, getvariable('report_lanes'))), 1), 1) END AS cell_ns
FROM drawn AS d
JOIN streams AS s ON s.trace_id = d.trace_id AND s.process IS NOT DISTINCT FROM d.process AND s.device IS NOT DISTINCT FROM d.device
LEFT JOIN devices AS g ON g.trace_id = s.trace_id AND g.ordinal IS NOT DISTINCT FROM s.device AND g.global_pid IS NOT DISTINCT FROM s.process
LEFT JOIN clocks AS c ON c.trace_id = s.trace_id
WHERE s.nth <= getvariable('report_lanes');
SELECT * FROM report_lanes ORDER BY place, stream;
