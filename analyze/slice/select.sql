-- What a slice of one trace holds. Variables: slice_trace (its trace_id),
-- slice_from and slice_to (ns on the clock of the trace, null for no bound) and
-- slice_device (null for all).
--
-- An event is in the window where it overlaps [slice_from, slice_to); one
-- without a length where it starts there. GPU work brings along the call that
-- launched it, the range that gives it its iteration and the operator of its
-- External id, wherever those lie.
CREATE OR REPLACE TEMP MACRO in_slice(start_ns, end_ns) AS
  (getvariable('slice_to') IS NULL OR start_ns < getvariable('slice_to'))
  AND (getvariable('slice_from') IS NULL OR start_ns >= getvariable('slice_from') OR end_ns > getvariable('slice_from'));

CREATE OR REPLACE TEMP MACRO on_device(d) AS getvariable('slice_device') IS NULL OR d = getvariable('slice_device');

CREATE OR REPLACE TEMP TABLE slice_gpu_events AS
SELECT * FROM gpu_events
WHERE trace_id = getvariable('slice_trace') AND on_device(device) AND in_slice(start_ns, end_ns)
ORDER BY event_index;

CREATE OR REPLACE TEMP TABLE slice_launches AS
SELECT * FROM launches
WHERE trace_id = getvariable('slice_trace')
  AND (in_slice(start_ns, end_ns) OR event_index IN (SELECT launch_id FROM slice_gpu_events WHERE launch_id IS NOT NULL))
ORDER BY event_index;

CREATE OR REPLACE TEMP TABLE slice_ranges AS
SELECT * FROM ranges
WHERE trace_id = getvariable('slice_trace') AND (NOT on_gpu OR on_device(device))
  AND (in_slice(start_ns, end_ns)
    OR event_index IN (SELECT iteration_range FROM slice_gpu_events WHERE iteration_range IS NOT NULL
                       UNION ALL SELECT iteration_range FROM slice_launches WHERE iteration_range IS NOT NULL))
ORDER BY event_index;

CREATE OR REPLACE TEMP TABLE slice_cpu_events AS
SELECT * FROM cpu_events
WHERE trace_id = getvariable('slice_trace')
  AND (in_slice(start_ns, end_ns)
    OR (correlation IS NULL AND external_id IN (SELECT external_id FROM slice_gpu_events WHERE external_id IS NOT NULL)))
ORDER BY event_index;

CREATE OR REPLACE TEMP TABLE slice_instants AS
SELECT * FROM instants
WHERE trace_id = getvariable('slice_trace') AND in_slice(start_ns, NULL)
ORDER BY event_index;

CREATE OR REPLACE TEMP TABLE slice_counters AS
SELECT * FROM counters
WHERE trace_id = getvariable('slice_trace') AND in_slice(start_ns, NULL)
ORDER BY event_index;

CREATE OR REPLACE TEMP TABLE slice_metadata AS
SELECT * FROM metadata
WHERE trace_id = getvariable('slice_trace')
ORDER BY event_index;

-- An end of an arrow is kept in the window, or at the start of an event that is
-- in the slice; never on a stream of another device. An arrow of which no two
-- ends are kept is left out.
CREATE OR REPLACE TEMP MACRO thread_key(pid, pid_text, tid, tid_text) AS
  coalesce(pid::VARCHAR, pid_text, '') || '/' || coalesce(tid::VARCHAR, tid_text, '');

CREATE OR REPLACE TEMP TABLE slice_flows AS
WITH early AS (
  SELECT thread_key(pid, pid_text, tid, tid_text) AS thread, start_ns FROM slice_gpu_events WHERE NOT in_slice(start_ns, NULL)
  UNION ALL SELECT thread_key(pid, pid_text, tid, tid_text), start_ns FROM slice_launches WHERE NOT in_slice(start_ns, NULL)
  UNION ALL SELECT thread_key(pid, pid_text, tid, tid_text), start_ns FROM slice_ranges WHERE NOT in_slice(start_ns, NULL)
  UNION ALL SELECT thread_key(pid, pid_text, tid, tid_text), start_ns FROM slice_cpu_events WHERE NOT in_slice(start_ns, NULL)
), elsewhere AS (
  SELECT DISTINCT thread_key(pid, pid_text, tid, tid_text) AS thread FROM gpu_events
  WHERE trace_id = getvariable('slice_trace') AND device <> getvariable('slice_device')
), ends AS (
  SELECT *, thread_key(pid, pid_text, tid, tid_text) AS thread, coalesce(id::VARCHAR, id_text) AS arrow FROM flows
  WHERE trace_id = getvariable('slice_trace')
), kept AS (
  SELECT * FROM ends
  WHERE (in_slice(start_ns, NULL) OR EXISTS (SELECT 1 FROM early WHERE early.thread = ends.thread AND early.start_ns = ends.start_ns))
    AND NOT EXISTS (SELECT 1 FROM elsewhere WHERE elsewhere.thread = ends.thread)
), arrows AS (
  SELECT category, arrow FROM kept GROUP BY ALL HAVING count(*) > 1
)
SELECT * FROM kept
WHERE (getvariable('slice_from') IS NULL AND getvariable('slice_to') IS NULL AND getvariable('slice_device') IS NULL)
   OR EXISTS (SELECT 1 FROM arrows WHERE arrows.category IS NOT DISTINCT FROM kept.category AND arrows.arrow IS NOT DISTINCT FROM kept.arrow)
ORDER BY event_index;
