-- title: Boxes of the timeline
-- what it answers: What ran on the streams of report_lanes?
-- columns and units:
--   place     device, as in report_lanes
--   stream    stream
--   class     compute, communication or memory
--   start_ns  first start after the start of the trace, ns
--   dur_ns    first start to last end, ns
--   events    events in the box
--   busy_ns   their summed duration, ns
--   name      the longest of them
SELECT l.place, l.stream, w.class,
  min(w.start_ns) - any_value(w.trace_start_ns) AS start_ns, max(w.end_ns) - min(w.start_ns) AS dur_ns,
  count(*) AS events, sum(w.dur_ns)::BIGINT AS busy_ns, first(w.name ORDER BY w.dur_ns DESC, w.event_index) AS name
FROM gpu_work AS w
JOIN report_lanes AS l
  ON l.trace_id = w.trace_id AND l.process IS NOT DISTINCT FROM w.process AND l.device IS NOT DISTINCT FROM w.device AND l.stream IS NOT DISTINCT FROM w.stream
GROUP BY l.place, l.stream, w.class,
  CASE WHEN l.cell_ns = 0 THEN w.event_index ELSE (w.start_ns - w.trace_start_ns) // l.cell_ns END
ORDER BY l.place, l.stream, start_ns, dur_ns, w.class, name;
