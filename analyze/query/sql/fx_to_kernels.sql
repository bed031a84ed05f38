-- title: From FX nodes to kernels
-- what it answers: Which kernels did each node of a model's graph become, and how long did they run in the profiles of the same model and mode?
--   Tables of tracers and profiles are joined by model, revision, framework and mode. The node is followed back through
--   from_graph_id and from_node to the first graph that has it. Kernels are found by name: Triton kernels among the GPU
--   events; C++ kernels among the CPU events, whose names start with the number of the graph; external kernels as the
--   operator of that name and the GPU work that it launched. A profile that does not run the compiled model shows the
--   operators of external kernels only, whoever called them. --run chooses both.
-- selects: run
-- needs: tables of tracers (tracelake collect)
-- columns and units:
--   model        model
--   mode         eval or train
--   origin       graph and node that the work started as
--   target       what that node calls
--   module       module that it comes from
--   node         node of the compiled graph
--   graph_id     compiled graph
--   kernel       generated or external kernel
--   backend      triton, cpp or extern
--   profiled_by  tracer whose profile shows the kernel; null where none does
--   trace_id     that profile
--   place        gpu or cpu
--   event        name of the events in the profile
--   events       events of the kernel in the profile
--   total_ns     sum of their durations, ns; nested CPU events count in each
WITH RECURSIVE
chosen AS (
  SELECT * FROM traces WHERE getvariable('run') IS NULL OR run = getvariable('run')::VARCHAR
),
steps AS (
  SELECT f.trace_id, f.graph_id, f.node, f.graph_id AS at_graph, f.node AS at_node, 0 AS depth
  FROM (SELECT DISTINCT trace_id, graph_id, node FROM fusions SEMI JOIN chosen USING (trace_id)) AS f
  UNION ALL
  SELECT s.trace_id, s.graph_id, s.node, n.from_graph_id, n.from_node, s.depth + 1
  FROM steps AS s
  JOIN graph_nodes AS n ON n.trace_id = s.trace_id AND n.graph_id = s.at_graph AND n.node = s.at_node
  WHERE n.from_node IS NOT NULL AND s.depth < 16
),
origins AS (
  SELECT trace_id, graph_id, node, arg_max(at_graph, depth) AS origin_graph, arg_max(at_node, depth) AS origin_node
  FROM steps GROUP BY ALL
),
kernels AS (
  SELECT DISTINCT f.trace_id, f.model, f.revision, f.framework, f.mode, f.graph_id, f.node, f.node_order, f.kernel, k.backend,
    CASE WHEN k.backend = 'extern' OR regexp_matches(f.kernel, '^(extern_kernels|aten|torch\.ops\.aten)\.')
      THEN 'aten::' || split_part(regexp_replace(f.kernel, '^(extern_kernels\.|torch\.ops\.aten\.|aten\.|aten::)', ''), '.', 1)
      ELSE f.kernel END AS event_name
  FROM fusions AS f
  SEMI JOIN chosen AS c ON c.trace_id = f.trace_id
  LEFT JOIN kernels_generated AS k ON k.trace_id = f.trace_id AND k.graph_id = f.graph_id AND k.kernel = f.kernel
),
profiles AS (
  SELECT trace_id, model, revision, framework, mode, tracer FROM chosen
  WHERE source <> 'tables' AND model IS NOT NULL
),
cpu AS (
  SELECT c.trace_id, regexp_replace(c.name, '^graph_[0-9]+_', '') AS event_name, c.name AS event, c.external_id, c.dur_ns
  FROM cpu_events AS c SEMI JOIN profiles USING (trace_id)
  WHERE c.category = 'cpu_op'
),
shown AS (
  SELECT g.trace_id, 'gpu' AS place, g.name AS event_name, g.name AS event, g.dur_ns
  FROM gpu_events AS g SEMI JOIN profiles USING (trace_id)
  UNION ALL
  SELECT trace_id, 'cpu', event_name, event, dur_ns FROM cpu
  UNION ALL
  SELECT g.trace_id, 'gpu', c.event_name, g.name, g.dur_ns
  FROM gpu_events AS g
  JOIN cpu AS c ON c.trace_id = g.trace_id AND c.external_id = g.external_id AND c.event_name <> g.name
),
counted AS (
  SELECT trace_id, place, event_name, event, count(*) AS events, sum(dur_ns)::BIGINT AS total_ns
  FROM shown GROUP BY ALL
)
SELECT
  k.model,
  k.mode,
  o.origin_graph || ' ' || o.origin_node AS origin,
  n.target,
  n.module,
  k.node,
  k.graph_id,
  k.kernel,
  k.backend,
  p.tracer AS profiled_by,
  p.trace_id,
  p.place,
  p.event,
  p.events,
  p.total_ns
FROM kernels AS k
LEFT JOIN origins AS o ON o.trace_id = k.trace_id AND o.graph_id = k.graph_id AND o.node = k.node
LEFT JOIN graph_nodes AS n ON n.trace_id = k.trace_id AND n.graph_id = o.origin_graph AND n.node = o.origin_node
LEFT JOIN (
  SELECT p.model, p.revision, p.framework, p.mode, p.tracer, c.*
  FROM profiles AS p JOIN counted AS c USING (trace_id)
) AS p
  ON p.event_name = k.event_name AND p.model = k.model AND p.mode = k.mode
  AND p.revision IS NOT DISTINCT FROM k.revision AND p.framework IS NOT DISTINCT FROM k.framework
ORDER BY k.model, k.mode, k.trace_id, k.graph_id, k.kernel, k.node_order, k.node, p.trace_id, p.place, p.event;
