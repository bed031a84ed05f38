-- title: Critical path
-- what it answers: Which chain of host work, launches and GPU work decided how long each iteration took?
--   The path is walked backwards from the last end of the iteration, of its GPU work or of its range: each step goes to
--   what was waited for last. A GPU event waits for its launch call (for the start of the call where it began before the
--   call returned), for the event before it on its stream, and for what a recorded event wait names. A call waits for the call before it on its thread, and one that synchronises
--   for the GPU work that ended last within it, on the stream where it is known. Threads are not linked to each other:
--   time of a thread before its first call is host time. The steps of an iteration add up to its length. A trace without
--   marked iterations is taken as one; GPU work must be linked. Record synchronisation for exact waits:
--   torch.profiler._ExperimentalConfig(enable_cuda_sync_events=True).
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
  SELECT t.trace_id, t.run, t.rank, t.start_ns, t.end_ns, coalesce(s.syncs, 0) > 0 AS recorded
  FROM selected_traces AS t
  LEFT JOIN (SELECT trace_id, count(*) AS syncs FROM cpu_events WHERE category = 'cuda_sync' GROUP BY ALL) AS s ON s.trace_id = t.trace_id
  WHERE t.linked_gpu_events > 0
),
marks AS (
  SELECT r.trace_id, r.event_index AS mark, r.iteration_producer AS producer, r.iteration_id AS iteration, r.start_ns AS since, r.start_ns + r.dur_ns AS until,
    coalesce(r.global_pid, r.pid) AS pid, r.tid
  FROM ranges AS r
  JOIN traces_with_work AS t ON t.trace_id = r.trace_id
  WHERE r.iteration_id IS NOT NULL AND NOT r.on_gpu AND timed(r.start_ns, r.dur_ns, r.time_flag) AND in_window(r.start_ns, t.start_ns)
    AND (getvariable('iteration') IS NULL OR r.iteration_id = getvariable('iteration')::VARCHAR)
  UNION ALL
  SELECT t.trace_id, -1, NULL, NULL, t.start_ns, NULL, NULL, NULL
  FROM traces_with_work AS t
  WHERE getvariable('iteration') IS NULL
    AND NOT EXISTS (SELECT 1 FROM ranges AS r WHERE r.trace_id = t.trace_id AND r.iteration_id IS NOT NULL AND NOT r.on_gpu)
),
gpu AS (
  SELECT g.trace_id, g.event_index AS node, gpu_class(g.kind, g.name, g.collective_name) AS what, g.name, g.start_ns, g.start_ns + g.dur_ns AS end_ns,
    g.global_pid AS process, g.device, g.stream, g.launch_id, coalesce(g.iteration_range, -1) AS mark
  FROM gpu_events AS g
  JOIN traces_with_work AS t ON t.trace_id = g.trace_id
  WHERE timed(g.start_ns, g.dur_ns, g.time_flag)
),
calls AS (
  SELECT l.trace_id, l.event_index AS node, l.api, l.start_ns, l.start_ns + l.dur_ns AS end_ns, coalesce(l.global_pid, l.pid) AS pid, l.tid, l.correlation, l.stream,
    regexp_matches(l.api, '(?i)(device|stream|event|ctx)synchronize|^(cuda|hip)memcpy(2d|3d)?$|^cumemcpy(htod|dtoh|dtod)?$|^(cuda|hip)free$') AS blocking
  FROM launches AS l
  JOIN traces_with_work AS t ON t.trace_id = l.trace_id
  WHERE timed(l.start_ns, l.dur_ns, l.time_flag)
),
syncs AS ( -- what the records of synchronisation say of a call, by correlation
  SELECT e.trace_id, e.correlation, e.name ILIKE 'stream wait%' AS is_wait,
    CASE WHEN e.name ILIKE 'stream%' AND e.stream BETWEEN 0 AND 4294967294 THEN e.stream
      WHEN e.name ILIKE 'event%' THEN TRY_CAST(json_extract(e.args_json, '$.wait_on_stream') AS BIGINT) END AS stream,
    TRY_CAST(json_extract(e.args_json, '$.wait_on_stream') AS BIGINT) AS source,
    TRY_CAST(json_extract(e.args_json, '$.wait_on_cuda_event_record_corr_id') AS BIGINT) AS record
  FROM cpu_events AS e
  JOIN traces_with_work AS t ON t.trace_id = e.trace_id
  WHERE e.category = 'cuda_sync' AND e.correlation IS NOT NULL
),
-- Dependencies: node waits for before, whose part in it ended at arrival. A call
-- is left at its start where its work began before it returned and at its end
-- elsewhere, so it is two nodes: entered (kind 1) and done (kind 2). GPU events are kind 0.
in_stream AS (
  SELECT trace_id, node, start_ns, lag(node) OVER w AS before, lag(end_ns) OVER w AS arrival
  FROM gpu
  WINDOW w AS (PARTITION BY trace_id, process, device, stream ORDER BY start_ns, node)
),
launched_at AS (
  SELECT g.trace_id, g.node, g.start_ns, g.end_ns, g.stream, c.node AS call, c.start_ns AS launched_ns,
    if(c.end_ns <= g.start_ns, 2, 1) AS call_kind, if(c.end_ns <= g.start_ns, c.end_ns, c.start_ns) AS arrival
  FROM gpu AS g JOIN calls AS c ON c.trace_id = g.trace_id AND c.node = g.launch_id
),
waits AS ( -- of the first work launched on a stream behind an event wait
  SELECT s.trace_id, s.stream, w.start_ns AS waited_at, r.start_ns AS recorded_at, s.source
  FROM syncs AS s
  JOIN calls AS w ON w.trace_id = s.trace_id AND w.correlation = s.correlation
  JOIN calls AS r ON r.trace_id = s.trace_id AND r.correlation = s.record
  WHERE s.is_wait
),
wait_sources AS (
  SELECT w.*, g.node AS before, g.end_ns AS done_at
  FROM waits AS w
  ASOF JOIN launched_at AS g ON g.trace_id = w.trace_id AND g.stream = w.source AND g.launched_ns < w.recorded_at
),
waited AS (
  SELECT w.trace_id, l.node, l.start_ns, w.before, w.done_at AS arrival
  FROM wait_sources AS w
  ASOF JOIN (SELECT *, -launched_ns AS neg FROM launched_at) AS l ON l.trace_id = w.trace_id AND l.stream = w.stream AND l.neg <= -w.waited_at
),
gpu_edges AS (
  SELECT trace_id, node, start_ns, 'stream' AS via, 0 AS before_kind, before, arrival FROM in_stream WHERE before IS NOT NULL
  UNION ALL
  SELECT trace_id, node, start_ns, 'launch', call_kind, call, arrival FROM launched_at
  UNION ALL
  SELECT trace_id, node, start_ns, 'wait', 0, before, arrival FROM waited WHERE before <> node
),
gpu_steps AS (
  SELECT trace_id, node, max_by({'via': via, 'before_kind': before_kind, 'before': before, 'arrival': arrival}, (arrival, via)) AS p
  FROM gpu_edges WHERE arrival <= start_ns
  GROUP BY ALL
),
in_thread AS (
  SELECT c.*, p.node AS before, p.end_ns AS before_end, s.stream AS sync_stream
  FROM calls AS c
  ASOF LEFT JOIN calls AS p ON p.trace_id = c.trace_id AND p.pid = c.pid AND p.tid = c.tid AND p.end_ns <= c.start_ns AND p.node <> c.node
  LEFT JOIN (SELECT trace_id, correlation, any_value(stream) AS stream FROM syncs WHERE NOT is_wait GROUP BY ALL) AS s
    ON c.blocking AND s.trace_id = c.trace_id AND s.correlation = c.correlation
),
blocked AS (
  SELECT c.trace_id, c.node, c.start_ns, g.node AS before, g.end_ns AS arrival
  FROM in_thread AS c
  ASOF JOIN gpu AS g ON g.trace_id = c.trace_id AND g.end_ns <= c.end_ns
  WHERE c.blocking AND coalesce(c.sync_stream, c.stream) IS NULL
  UNION ALL
  SELECT c.trace_id, c.node, c.start_ns, g.node, g.end_ns
  FROM in_thread AS c
  ASOF JOIN gpu AS g ON g.trace_id = c.trace_id AND g.stream = coalesce(c.sync_stream, c.stream) AND g.end_ns <= c.end_ns
  WHERE c.blocking
),
nodes AS ( -- a node, when it starts and ends, and the step back from it
  SELECT g.trace_id, 0 AS kind, g.node, g.what, g.name, g.start_ns, g.end_ns, s.p.via AS via, s.p.before_kind AS before_kind, s.p.before AS before, s.p.arrival AS arrival
  FROM gpu AS g LEFT JOIN gpu_steps AS s ON s.trace_id = g.trace_id AND s.node = g.node
  UNION ALL
  SELECT trace_id, 1, node, 'call', api, start_ns, start_ns, 'host', 2, before, before_end FROM in_thread
  UNION ALL
  SELECT c.trace_id, 2, c.node, 'call', c.api, CASE WHEN b.arrival > c.start_ns THEN c.end_ns ELSE c.start_ns END, c.end_ns,
    CASE WHEN b.arrival > c.start_ns THEN 'sync' ELSE 'host' END, CASE WHEN b.arrival > c.start_ns THEN 0 ELSE 2 END,
    CASE WHEN b.arrival > c.start_ns THEN b.before ELSE c.before END, CASE WHEN b.arrival > c.start_ns THEN b.arrival ELSE c.before_end END
  FROM in_thread AS c
  LEFT JOIN blocked AS b ON b.trace_id = c.trace_id AND b.node = c.node
),
ends AS ( -- where the path of an iteration ends: its last GPU work, or the last call before its range ends
  SELECT m.trace_id, m.mark, m.since, m.until, max(g.end_ns) AS gpu_end, max_by(g.node, (g.end_ns, g.node)) AS gpu_node
  FROM marks AS m
  LEFT JOIN gpu AS g ON g.trace_id = m.trace_id AND (g.mark = m.mark OR m.mark = -1)
  GROUP BY ALL
),
roots AS (
  SELECT e.trace_id, e.mark, e.since, greatest(e.gpu_end, e.until) AS until,
    CASE WHEN e.until IS NULL OR e.gpu_end >= e.until THEN 0 ELSE 2 END AS kind,
    CASE WHEN e.until IS NULL OR e.gpu_end >= e.until THEN e.gpu_node ELSE c.node END AS node
  FROM ends AS e
  JOIN marks AS m ON m.trace_id = e.trace_id AND m.mark = e.mark
  ASOF LEFT JOIN calls AS c ON c.trace_id = e.trace_id AND c.pid = m.pid AND c.tid = m.tid AND c.end_ns <= e.until
),
-- All nodes of a path by doubling: in round k every node knows the one 2^k steps
-- before it, and the path is known to 2^k nodes.
jumps AS (
  SELECT 0 AS round, n.trace_id, n.kind, n.node, n.end_ns, n.before_kind, n.before,
    list({'mark': r.mark, 'since': r.since}) FILTER (r.mark IS NOT NULL) AS marks
  FROM nodes AS n
  LEFT JOIN roots AS r ON r.trace_id = n.trace_id AND r.kind = n.kind AND r.node = n.node
  GROUP BY ALL
  UNION ALL
  SELECT a.round + 1, a.trace_id, a.kind, a.node, a.end_ns, b.before_kind, b.before,
    CASE WHEN c.marks IS NULL THEN a.marks ELSE list_distinct(list_concat(a.marks, list_filter(c.marks, lambda m: m.since < a.end_ns))) END
  FROM jumps AS a
  LEFT JOIN jumps AS b ON b.trace_id = a.trace_id AND b.kind = a.before_kind AND b.node = a.before
  LEFT JOIN (SELECT trace_id, before_kind, before, flatten(list(marks)) AS marks FROM jumps WHERE before IS NOT NULL AND len(marks) > 0 GROUP BY ALL) AS c
    ON c.trace_id = a.trace_id AND c.before_kind = a.kind AND c.before = a.node
  WHERE a.round < 40 AND EXISTS (SELECT 1 FROM jumps WHERE before IS NOT NULL)
),
paths AS (
  SELECT trace_id, kind, node, unnest(marks).mark AS mark FROM jumps WHERE round = (SELECT max(round) FROM jumps) AND len(marks) > 0
),
steps AS ( -- the time of a node itself, and of the way from the one before it, inside the iteration
  SELECT r.trace_id, r.mark, n.what, n.name, least(n.end_ns, r.until) - greatest(n.start_ns, r.since) AS ns
  FROM paths AS p
  JOIN roots AS r ON r.trace_id = p.trace_id AND r.mark = p.mark
  JOIN nodes AS n ON n.trace_id = p.trace_id AND n.kind = p.kind AND n.node = p.node
  UNION ALL
  SELECT r.trace_id, r.mark, CASE WHEN n.before IS NULL THEN 'host' ELSE n.via END, CASE WHEN n.before IS NOT NULL AND n.via <> 'host' THEN n.name END,
    n.start_ns - greatest(coalesce(n.arrival, r.since), r.since)
  FROM paths AS p
  JOIN roots AS r ON r.trace_id = p.trace_id AND r.mark = p.mark
  JOIN nodes AS n ON n.trace_id = p.trace_id AND n.kind = p.kind AND n.node = p.node
  UNION ALL -- from the last node to the end of the range
  SELECT r.trace_id, r.mark, 'host', NULL, r.until - greatest(coalesce(n.end_ns, r.since), r.since)
  FROM roots AS r
  LEFT JOIN nodes AS n ON n.trace_id = r.trace_id AND n.kind = r.kind AND n.node = r.node
),
sums AS (
  SELECT trace_id, mark, what, name, count(*) AS steps, sum(ns)::BIGINT AS ns,
    row_number() OVER (PARTITION BY trace_id, mark ORDER BY sum(ns) DESC, what, name) AS place
  FROM steps WHERE ns > 0
  GROUP BY trace_id, mark, what, name
)
SELECT
  t.run, t.rank, s.trace_id, m.producer, m.iteration,
  round((r.until - r.since) / 1e6, 3) AS path_ms,
  s.what, s.name, s.steps,
  round(s.ns / 1e6, 3) AS total_ms,
  round(100.0 * s.ns / nullif(r.until - r.since, 0), 2) AS share_pct,
  CASE WHEN t.recorded THEN 'recorded' ELSE 'inferred' END AS waits
FROM sums AS s
JOIN roots AS r ON r.trace_id = s.trace_id AND r.mark = s.mark
JOIN marks AS m ON m.trace_id = s.trace_id AND m.mark = s.mark
JOIN traces_with_work AS t ON t.trace_id = s.trace_id
WHERE s.place <= coalesce(getvariable('top')::BIGINT, 25)
ORDER BY t.run, t.rank, s.trace_id, r.since, m.mark, s.place;
