-- title: Critical path
-- what it answers: Which chain of host work, launches and GPU work decided how long each iteration took?
--   The path is walked backwards from the last end of the iteration, of its GPU work or of its range: each step goes to
--   what was waited for last. A GPU event waits for its launch call (for the start of the call where it began before the
--   call returned), for the event before it on its stream, and for what a recorded event wait names. A call waits for the call before it on its thread, and one that synchronises
--   for the GPU work that ended last within it, on the stream where it is known. Threads are not linked to each other:
--   time of a thread before its first call is host time. The steps of an iteration add up to its length. A trace without
--   marked iterations, or the selected part of it, is taken as one; GPU work must be linked. Record synchronisation for exact waits:
--   torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True).
-- selects: run, rank, trace, iteration, from, to
-- traces: apart
-- parameters:
--   top  rows per iteration; default 25
-- columns and units:
--   run        run of the trace
--   rank       rank; null where nothing tells it
--   trace_id   trace
--   producer   who marked the iteration
--   iteration  its ID; null for the trace as a whole
--   path_ms    length of the path, ms
--   what       compute, communication, memory: GPU work; launch: from a call to the start of its work; stream: gap behind earlier work
--              of the stream; wait: gap behind what an event wait names; call: a call of the runtime; sync: rest of a call behind the work
--              that it waits for; host: everything else on the CPU
--   name       kernel, copy or call; null for host
--   steps      steps of the path
--   total_ms   their time on the path, ms
--   share_pct  part of the path, %
--   waits      recorded: the trace has synchronisation records; inferred: it does not
WITH RECURSIVE traces_with_work AS (
  SELECT t.trace_id, t.run, t.rank, t.start_ns, t.end_ns, coalesce(s.syncs, 0) > 0 AS recorded,
    row_number() OVER (ORDER BY t.trace_id) AS trace, row_number() OVER (ORDER BY t.trace_id) << 40 AS first_id
  FROM selected_traces AS t
  LEFT JOIN (SELECT trace_id, count(*) AS syncs FROM cpu_events WHERE category = 'cuda_sync' GROUP BY ALL) AS s ON s.trace_id = t.trace_id
  WHERE t.linked_gpu_events > 0
),
marks AS (
  SELECT t.trace, r.event_index AS mark, r.iteration_producer AS producer, r.iteration_id AS iteration, r.start_ns AS since, r.start_ns + r.dur_ns AS until,
    coalesce(r.global_pid, r.pid) AS pid, r.tid
  FROM ranges AS r
  JOIN traces_with_work AS t ON t.trace_id = r.trace_id
  WHERE r.iteration_id IS NOT NULL AND NOT r.on_gpu AND timed(r.start_ns, r.dur_ns, r.time_flag) AND in_window(r.start_ns, t.start_ns)
    AND (getvariable('iteration') IS NULL OR r.iteration_id = getvariable('iteration')::VARCHAR)
  UNION ALL
  SELECT t.trace, -1, NULL, NULL, t.start_ns + coalesce(getvariable('from_ns')::BIGINT, 0), NULL, NULL, NULL
  FROM traces_with_work AS t
  WHERE getvariable('iteration') IS NULL
    AND NOT EXISTS (SELECT 1 FROM ranges AS r WHERE r.trace_id = t.trace_id AND r.iteration_id IS NOT NULL AND NOT r.on_gpu)
),
-- Dependencies: a node waits for before, whose part in it ended at arrival. A call
-- is left at its start where its work began before it returned and at its end
-- elsewhere, so it is two nodes. Nodes have numbers, which join and sort faster
-- than traces and events: three for each event, of which GPU work uses the
-- first, calls the second where they are entered and the third where they are done.
gpu AS (
  SELECT t.trace, t.first_id + 3 * g.event_index AS id, t.first_id + 3 * g.launch_id AS launch, g.start_ns, g.start_ns + g.dur_ns AS end_ns,
    part_number(t.trace, g.global_pid, g.device) AS part, g.global_pid AS process, g.device, g.stream, coalesce(g.iteration_range, -1) AS mark, in_window(g.start_ns, t.start_ns) AS selected
  FROM gpu_events AS g
  JOIN traces_with_work AS t ON t.trace_id = g.trace_id
  WHERE timed(g.start_ns, g.dur_ns, g.time_flag)
),
calls AS (
  SELECT t.trace, t.first_id + 3 * l.event_index AS id, l.start_ns, l.start_ns + l.dur_ns AS end_ns, l.global_pid AS process, coalesce(l.global_pid, l.pid) AS pid, l.tid,
    part_number(t.trace, l.global_pid, l.correlation) AS call, l.stream, waits_for_gpu(l.api) AS blocking
  FROM launches AS l
  JOIN traces_with_work AS t ON t.trace_id = l.trace_id
  WHERE timed(l.start_ns, l.dur_ns, l.time_flag)
),
syncs AS ( -- what the records of synchronisation say of a call, by process and correlation: as one number, or the planner joins calls by trace
  SELECT t.trace, e.global_pid AS process, part_number(t.trace, e.global_pid, e.correlation) AS call, e.device, e.name ILIKE 'stream wait%' AS is_wait,
    CASE WHEN e.name ILIKE 'stream%' AND e.stream BETWEEN 0 AND 4294967294 THEN e.stream
      WHEN e.name ILIKE 'event%' THEN nullif(TRY_CAST(json_extract(e.args_json, '$.wait_on_stream') AS BIGINT), -1) END AS stream,
    TRY_CAST(json_extract(e.args_json, '$.wait_on_stream') AS BIGINT) AS source,
    TRY_CAST(json_extract(e.args_json, '$.wait_on_cuda_event_record_corr_id') AS BIGINT) AS record
  FROM cpu_events AS e
  JOIN traces_with_work AS t ON t.trace_id = e.trace_id
  WHERE e.category = 'cuda_sync' AND e.correlation IS NOT NULL
),
gpus AS ( -- streams have numbers within a device, and devices where there are processes within one
  SELECT trace, process, device, part FROM gpu GROUP BY ALL
),
launched_at AS (
  SELECT g.trace, g.id, g.start_ns, g.end_ns, g.part, g.stream, c.start_ns AS launched_ns,
    c.id + if(c.end_ns <= g.start_ns, 2, 1) AS before, if(c.end_ns <= g.start_ns, c.end_ns, c.start_ns) AS arrival
  FROM gpu AS g JOIN calls AS c ON c.id = g.launch
),
waits AS ( -- of the first work launched on a stream behind an event wait
  SELECT row_number() OVER () AS wait, s.trace, s.process, g.part, s.stream, w.start_ns AS waited_at, r.start_ns AS recorded_at, s.source
  FROM syncs AS s
  JOIN calls AS w ON w.call = s.call
  JOIN calls AS r ON r.call = part_number(s.trace, s.process, s.record)
  JOIN gpus AS g ON g.trace = s.trace AND g.process IS NOT DISTINCT FROM s.process AND (s.device IS NULL OR g.device = s.device)
  WHERE s.is_wait AND s.record IS NOT NULL
),
wait_sources AS ( -- the event may be of another device, which no record tells
  SELECT w.wait, arg_max(g.id, (g.part = w.part, g.end_ns)) AS before, arg_max(g.end_ns, (g.part = w.part, g.end_ns)) AS done_at
  FROM (SELECT w.*, d.part AS source_part FROM waits AS w JOIN gpus AS d ON d.trace = w.trace AND d.process IS NOT DISTINCT FROM w.process) AS w
  ASOF JOIN launched_at AS g ON g.part = w.source_part AND g.stream = w.source AND g.launched_ns < w.recorded_at
  GROUP BY w.wait
),
waited AS (
  SELECT l.id, max(s.done_at) AS arrival, max_by(s.before, s.done_at) AS before
  FROM waits AS w
  JOIN wait_sources AS s ON s.wait = w.wait
  ASOF JOIN (SELECT *, -launched_ns AS neg FROM launched_at) AS l ON l.part = w.part AND l.stream = w.stream AND l.neg <= -w.waited_at
  WHERE s.before <> l.id AND s.done_at <= l.start_ns
  GROUP BY l.id
),
in_stream AS (
  SELECT id, start_ns, end_ns, lag(id) OVER w AS before, lag(end_ns) OVER w AS arrival
  FROM gpu
  WINDOW w AS (PARTITION BY part, stream ORDER BY start_ns, id)
),
gpu_edges AS ( -- what may have come last; what came later than the start did not hold it up
  SELECT s.id, s.start_ns, s.end_ns,
    CASE WHEN s.arrival <= s.start_ns THEN s.before END AS earlier, CASE WHEN s.arrival <= s.start_ns THEN s.arrival END AS earlier_ns,
    CASE WHEN l.arrival <= l.start_ns THEN l.before END AS launch, CASE WHEN l.arrival <= l.start_ns THEN l.arrival END AS launch_ns,
    w.before AS waited, w.arrival AS waited_ns
  FROM in_stream AS s
  LEFT JOIN launched_at AS l ON l.id = s.id
  LEFT JOIN waited AS w ON w.id = s.id
),
gpu_nodes AS (
  SELECT id, start_ns, end_ns, greatest(earlier_ns, launch_ns, waited_ns) AS arrival,
    CASE greatest(earlier_ns, launch_ns, waited_ns) WHEN waited_ns THEN 'wait' WHEN earlier_ns THEN 'stream' WHEN launch_ns THEN 'launch' END AS via,
    CASE greatest(earlier_ns, launch_ns, waited_ns) WHEN waited_ns THEN waited WHEN earlier_ns THEN earlier WHEN launch_ns THEN launch END AS before
  FROM gpu_edges
),
moments AS ( -- at one moment calls end first and start last; those without a length do both in between
  SELECT id, trace, pid, tid, start_ns AS moment, if(end_ns > start_ns, 2, 1) AS place, false AS done, end_ns FROM calls
  UNION ALL
  SELECT id, trace, pid, tid, end_ns, if(end_ns > start_ns, 0, 1), true, NULL FROM calls
),
in_thread AS ( -- a call, and the one that ended last on its thread before it started
  SELECT id, moment AS start_ns, end_ns,
    last_value(CASE WHEN done THEN id + 2 END IGNORE NULLS) OVER w AS before, last_value(CASE WHEN done THEN moment END IGNORE NULLS) OVER w AS before_end
  FROM moments
  WINDOW w AS (PARTITION BY trace, pid, tid ORDER BY moment, place, id, done ROWS UNBOUNDED PRECEDING)
  QUALIFY NOT done
),
blocking AS ( -- by device: all where the record does not tell it
  SELECT c.trace, c.id, c.start_ns, c.end_ns, g.part, coalesce(s.stream, c.stream) AS stream
  FROM calls AS c
  LEFT JOIN (SELECT call, any_value(stream) AS stream, any_value(device) AS device FROM syncs WHERE NOT is_wait GROUP BY ALL) AS s
    ON s.call = c.call
  JOIN gpus AS g ON g.trace = c.trace AND g.process IS NOT DISTINCT FROM c.process AND (s.device IS NULL OR g.device = s.device)
  WHERE c.blocking
),
blocked AS ( -- calls that GPU work held up
  SELECT id, any_value(start_ns) AS start_ns, arg_max(before, (arrival, before)) AS before, max(arrival) AS arrival
  FROM (
    SELECT c.id, c.start_ns, g.id AS before, g.end_ns AS arrival
    FROM blocking AS c
    ASOF JOIN gpu AS g ON g.part = c.part AND g.end_ns <= c.end_ns
    WHERE c.stream IS NULL
    UNION ALL
    SELECT c.id, c.start_ns, g.id, g.end_ns
    FROM blocking AS c
    ASOF JOIN gpu AS g ON g.part = c.part AND g.stream = c.stream AND g.end_ns <= c.end_ns
  )
  GROUP BY id
),
nodes AS MATERIALIZED ( -- a node, when it starts and ends, and the step back from it
  SELECT id, start_ns, end_ns, via, before, arrival FROM gpu_nodes
  UNION ALL
  SELECT c.id + 1, c.start_ns, c.start_ns, 'host', c.before, c.before_end FROM in_thread AS c SEMI JOIN gpu_nodes AS g ON g.before = c.id + 1
  UNION ALL
  SELECT c.id + 2, if(b.id IS NULL, c.start_ns, c.end_ns), c.end_ns, if(b.id IS NULL, 'host', 'sync'), if(b.id IS NULL, c.before, b.before), if(b.id IS NULL, c.before_end, b.arrival)
  FROM in_thread AS c
  LEFT JOIN (SELECT * FROM blocked WHERE arrival > start_ns) AS b ON b.id = c.id
),
gpu_ends AS (
  SELECT trace, mark, max(end_ns) AS gpu_end, max_by(id, (end_ns, id)) AS gpu_node FROM gpu WHERE mark >= 0 GROUP BY ALL
  UNION ALL
  SELECT trace, -1, max(end_ns), max_by(id, (end_ns, id)) FROM gpu WHERE selected GROUP BY ALL
),
roots AS MATERIALIZED ( -- where the path of an iteration ends: its last GPU work, or the last call before its range ends
  SELECT row_number() OVER () AS path, m.trace, m.mark, m.producer, m.iteration, m.since, greatest(e.gpu_end, m.until) AS until,
    CASE WHEN m.until IS NULL OR e.gpu_end >= m.until THEN e.gpu_node ELSE c.id + 2 END AS id
  FROM marks AS m
  LEFT JOIN gpu_ends AS e ON e.trace = m.trace AND e.mark = m.mark
  ASOF LEFT JOIN calls AS c ON c.trace = m.trace AND c.pid = m.pid AND c.tid = m.tid AND c.end_ns <= m.until
),
-- All nodes of a path by doubling: in a round every node (path is -1) knows the
-- one 2^round steps before it, and the first 2^round nodes of each path are known.
walk AS (
  SELECT 0 AS round, -1::BIGINT AS path, id, NULL::BIGINT AS since, before, arrival FROM nodes WHERE before IS NOT NULL
  UNION ALL
  SELECT 0, path, id, since, NULL, NULL FROM roots WHERE id IS NOT NULL
  UNION ALL (
    WITH found AS MATERIALIZED (
      SELECT p.round + 1 AS round, p.path, n.before AS id, p.since
      FROM walk AS p
      JOIN walk AS n ON n.path = -1 AND n.id = p.id
      WHERE p.path >= 0 AND n.arrival > p.since AND p.round < 40
    )
    SELECT round, path, id, since, NULL, NULL FROM (
      SELECT round, path, id, since FROM found
      UNION -- once, should a path come back to where it was
      SELECT round + 1, path, id, since FROM walk WHERE path >= 0 AND EXISTS (SELECT 1 FROM found)
    )
    UNION ALL
    SELECT a.round + 1, -1, a.id, NULL, b.before, b.arrival
    FROM walk AS a
    JOIN walk AS b ON b.path = -1 AND b.id = a.before
    WHERE a.path = -1 AND EXISTS (SELECT 1 FROM found)
  )
),
on_path AS (
  SELECT r.path, r.since, r.until, n.*
  FROM walk AS p
  JOIN roots AS r ON r.path = p.path
  JOIN nodes AS n ON n.id = p.id
  WHERE p.round = (SELECT max(round) FROM walk)
),
steps AS ( -- the time of a node itself, and of the way from the one before it, inside the iteration; id where the name is that of the event
  SELECT path, NULL AS what, id, least(end_ns, until) - greatest(start_ns, since) AS ns FROM on_path
  UNION ALL
  SELECT path, if(before IS NULL, 'host', via), CASE WHEN before IS NOT NULL AND via <> 'host' THEN id END, start_ns - greatest(coalesce(arrival, since), since) FROM on_path
  UNION ALL -- from the last node to the end of the range
  SELECT r.path, 'host', NULL, r.until - greatest(coalesce(n.end_ns, r.since), r.since)
  FROM roots AS r
  LEFT JOIN nodes AS n ON n.id = r.id
),
by_event AS (
  SELECT path, what, id - id % (1::BIGINT << 40) % 3 AS event, count(*) AS steps, sum(ns)::BIGINT AS ns FROM steps WHERE ns > 0 GROUP BY ALL
),
events AS (
  SELECT t.first_id + 3 * g.event_index AS event, gpu_class(g.kind, g.name, g.collective_name) AS what, g.name
  FROM gpu_events AS g JOIN traces_with_work AS t ON t.trace_id = g.trace_id
  UNION ALL
  SELECT t.first_id + 3 * l.event_index, 'call', l.api
  FROM launches AS l JOIN traces_with_work AS t ON t.trace_id = l.trace_id
),
sums AS (
  SELECT b.path, coalesce(b.what, e.what) AS what, e.name, sum(b.steps)::BIGINT AS steps, sum(b.ns)::BIGINT AS ns,
    row_number() OVER (PARTITION BY b.path ORDER BY sum(b.ns) DESC, coalesce(b.what, e.what), e.name) AS place
  FROM by_event AS b
  LEFT JOIN events AS e ON e.event = b.event
  GROUP BY b.path, coalesce(b.what, e.what), e.name
)
SELECT
  t.run, t.rank, t.trace_id, r.producer, r.iteration,
  round((r.until - r.since) / 1e6, 3) AS path_ms,
  s.what, s.name, s.steps,
  round(s.ns / 1e6, 3) AS total_ms,
  round(100.0 * s.ns / nullif(r.until - r.since, 0), 2) AS share_pct,
  CASE WHEN t.recorded THEN 'recorded' ELSE 'inferred' END AS waits
FROM sums AS s
JOIN roots AS r ON r.path = s.path
JOIN traces_with_work AS t ON t.trace = r.trace
WHERE s.place <= coalesce(getvariable('top')::BIGINT, 25)
ORDER BY t.run, t.rank, t.trace_id, r.since, r.mark, s.place;
