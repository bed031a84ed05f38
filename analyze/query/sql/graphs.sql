-- title: CUDA graph replays
-- what it answers: How long does each CUDA graph take when it is replayed, how much of that is work, and how much gaps between its kernels?
--   A replay is one launch of a graph: all GPU work that is linked to it. Graphs that were recorded as a whole (kind
--   gpu_graph) are busy all the time, as their kernels are unknown.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: launches of CUDA graphs
-- columns and units:
--   run           run of the trace
--   rank          rank; null where nothing tells it
--   trace_id      trace
--   process       global ID of the process whose ordinals the devices are (Nsight Systems)
--   device        device ordinal
--   graph_id      graph; null where the trace does not number graphs
--   launch_api    call that launches it
--   replays       launches with GPU work
--   events        mean GPU events per replay
--   wall_us       mean first start to last end, µs
--   busy_us       mean time with an event running, µs
--   gaps_us       mean rest, µs
--   min_wall_us   shortest replay, µs
--   max_wall_us   longest replay, µs
--   launch_us     mean cost of the call on the CPU, µs
WITH work AS (
  SELECT w.trace_id, w.run, w.rank, w.process, w.device, w.graph_id, w.launch_id, w.kind, w.start_ns, w.end_ns, l.api, l.dur_ns AS launch_ns,
    max(w.end_ns) OVER (PARTITION BY w.trace_id, w.launch_id, w.process, w.device ORDER BY w.start_ns, w.event_index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
  FROM gpu_work AS w
  JOIN launches AS l ON l.trace_id = w.trace_id AND l.event_index = w.launch_id
  WHERE w.graph_id IS NOT NULL OR w.kind = 'gpu_graph' OR launches_graph(l.api)
),
replays AS (
  SELECT trace_id, run, rank, process, device, max(graph_id) AS graph_id, any_value(api) AS api, launch_id, count(*) AS events,
    max(end_ns) - min(start_ns) AS wall_ns,
    sum(greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0)) AS busy_ns,
    any_value(launch_ns) AS launch_ns
  FROM work
  GROUP BY trace_id, run, rank, process, device, launch_id
)
SELECT
  run, rank, trace_id, process, device, graph_id, api AS launch_api,
  count(*) AS replays,
  round(avg(events), 2) AS events,
  round(avg(wall_ns) / 1e3, 3) AS wall_us,
  round(avg(busy_ns) / 1e3, 3) AS busy_us,
  round(avg(wall_ns - busy_ns) / 1e3, 3) AS gaps_us,
  round(min(wall_ns) / 1e3, 3) AS min_wall_us,
  round(max(wall_ns) / 1e3, 3) AS max_wall_us,
  round(avg(launch_ns) / 1e3, 3) AS launch_us
FROM replays
GROUP BY ALL
ORDER BY run, rank, trace_id, sum(wall_ns) DESC, process, device, graph_id, launch_api;
