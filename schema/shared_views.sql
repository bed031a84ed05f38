-- An ASOF join looks at few rows of each side. Where DuckDB expects fewer than 64
-- rows on the left it compares all with all instead, and it expects that of
-- joins that then have millions.
SET asof_loop_join_threshold = 0;

-- What analyses share. The views show what these variables select, and all of
-- it where they are not set (SET VARIABLE run = 'name'): run, rank, trace
-- (trace_id), traces (a list of them), device, iteration, and from_ns and to_ns, which count from the
-- start of each trace.
CREATE OR REPLACE VIEW selected_traces AS
SELECT * FROM traces
WHERE duplicate_of IS NULL AND outcome <> 'rejected' AND source <> 'tables'
  AND (getvariable('run') IS NULL OR run = getvariable('run')::VARCHAR)
  AND (getvariable('rank') IS NULL OR rank = getvariable('rank')::BIGINT)
  AND (getvariable('trace') IS NULL OR trace_id = getvariable('trace')::VARCHAR)
  AND (getvariable('traces') IS NULL OR list_contains(getvariable('traces')::VARCHAR[], trace_id));

-- What a piece of GPU work is for. Collectives are told by what the profiler
-- says of them, or by the names of the kernels of libraries and frameworks.
-- Inductor's kernels (triton_…) are named after operators around what they
-- compute, collectives among them.
CREATE OR REPLACE MACRO gpu_class(kind, name, collective_name) AS CASE
  WHEN kind IN ('gpu_memcpy', 'gpu_memset') THEN 'memory'
  WHEN collective_name IS NOT NULL THEN 'communication'
  WHEN contains(name, 'ccl') OR contains(name, 'cross_device_') OR contains(name, 'deep_ep::') OR contains(name, 'nvshmem') OR contains(name, 'symmetric_memory::') OR contains(name, 'userbuffers_')
    OR contains(lower(name), 'all_reduce') OR contains(lower(name), 'allreduce') OR contains(lower(name), 'all_gather') OR contains(lower(name), 'allgather')
    OR contains(lower(name), 'reduce_scatter') OR contains(lower(name), 'reducescatter') OR contains(lower(name), 'all_to_all') OR contains(lower(name), 'alltoall')
    -- a pattern is looked for in every row, a text in every distinct name: ask for the pattern only where it can match
    THEN CASE WHEN regexp_matches(name, '^(void )?(nccl|rccl|mscclpp?|oneccl|hccl)|ncclDevKernel|ncclKernel|rcclGenericKernel|cross_device_|deep_ep::|nvshmem|symmetric_memory::\w+_kernel|userbuffers_')
      OR NOT starts_with(name, 'triton_') AND regexp_matches(name, '(?i)multimem_\w*(all_?reduce|all_?gather|reduce_?scatter)|(one|two)_?shot_?(all_?reduce|all_?gather|reduce_?scatter)|hybridcubemeshallreduce|all_?reduce_?(fusion|prototype|kernel)|trtllm_(mnnvl_)?allreduce|(all_?gather|reduce_?scatter|all_?to_?all)_?kernel')
      THEN 'communication' ELSE 'compute' END
  ELSE 'compute' END;

-- Whether the recorded times of an event count: time_flag says what is wrong
-- with those that do not.
CREATE OR REPLACE MACRO timed(start_ns, dur_ns, time_flag) AS
  start_ns IS NOT NULL AND dur_ns >= 0 AND (time_flag IS NULL OR time_flag = 'overruns_next');

-- Whether a call of the runtime or driver waits for GPU work, as its vendor
-- documents it. Sets and copies between peers return at once.
CREATE OR REPLACE MACRO waits_for_gpu(api) AS
  CASE WHEN contains(lower(api), 'sync') OR contains(lower(api), 'cpy') OR contains(lower(api), 'free')
    THEN regexp_matches(api, '(?i)(device|stream|event|ctx|thread)synchronize|^((cuda|hip|hipdrv|cu)memcpy(2d|3d|2dunaligned|param2d|withstream|[ahd]to[ahd]|(2d)?(to|from)array|(2d)?arraytoarray|(to|from)symbol)?|(cuda|hip)free|hip(hostfree|freehost)|cumemfree)(_v\d+|_ptds|_spt)*$')
    ELSE false END;

-- Whether a call launches a graph of CUDA or HIP.
CREATE OR REPLACE MACRO launches_graph(api) AS contains(lower(api), 'graphlaunch');

-- Whether what belongs to an iteration (null: to none) is selected.
CREATE OR REPLACE MACRO in_iteration(iteration_id) AS
  getvariable('iteration') IS NULL OR coalesce(iteration_id = getvariable('iteration')::VARCHAR, false);

-- Whether a time lies in the selected part of a trace that starts at trace_start.
CREATE OR REPLACE MACRO in_window(start_ns, trace_start) AS
  (getvariable('from_ns') IS NULL OR start_ns >= trace_start + getvariable('from_ns')::BIGINT)
  AND (getvariable('to_ns') IS NULL OR start_ns < trace_start + getvariable('to_ns')::BIGINT);

-- Unions of half-open intervals. The gaps of a union lie between the n-th
-- smallest end and the next start in order, where that is later: then as many
-- intervals ended as had started.
CREATE OR REPLACE MACRO interval_steps(starts, ends) AS list_zip(ends[:len(ends) - 1], starts[2:]);
CREATE OR REPLACE MACRO sorted_where(value, a, b) AS list(value ORDER BY value) FILTER (a IS NOT NULL AND b IS NOT NULL);
CREATE OR REPLACE MACRO union_of_sorted(starts, ends) AS list_transform(list_zip(
    list_concat(starts[:1], list_transform(list_filter(interval_steps(starts, ends), lambda g: g[2] > g[1]), lambda g: g[2])),
    list_concat(list_transform(list_filter(interval_steps(starts, ends), lambda g: g[2] > g[1]), lambda g: g[1]), ends[len(ends):])
  ), lambda i: {'start_ns': i[1], 'end_ns': i[2]});

-- The union of the intervals of a group, as a list of disjoint ones in order.
-- An aggregate; rows without a start or end do not count.
CREATE OR REPLACE MACRO interval_union(start_ns, end_ns) AS
  union_of_sorted(sorted_where(start_ns, start_ns, end_ns), sorted_where(end_ns, start_ns, end_ns));

-- The length of a list of disjoint intervals.
CREATE OR REPLACE MACRO interval_length(intervals) AS
  coalesce(list_sum(list_transform(intervals, lambda i: i.end_ns - i.start_ns)), 0)::BIGINT;

-- The length of the union of the intervals of a group. An aggregate.
CREATE OR REPLACE MACRO busy_ns(start_ns, end_ns) AS interval_length(interval_union(start_ns, end_ns));

-- The time that two lists of disjoint intervals share.
CREATE OR REPLACE MACRO overlap_ns(a, b) AS
  interval_length(a) + interval_length(b) - interval_length(union_of_sorted(
    list_sort(list_transform(list_concat(a, b), lambda i: i.start_ns)), list_sort(list_transform(list_concat(a, b), lambda i: i.end_ns))));

-- GPU work whose times count, whatever iteration, from_ns and to_ns say: that of a
-- selected call often starts behind the window, and is that of all calls inside.
-- process is set where device ordinals count within a process (Nsight Systems).
CREATE OR REPLACE VIEW gpu_work_anytime AS
SELECT
  g.trace_id, t.run, t.rank, g.global_pid AS process, g.device, g.stream, g.event_index,
  g.kind, gpu_class(g.kind, g.name, g.collective_name) AS class, g.name, g.start_ns, g.dur_ns, g.start_ns + g.dur_ns AS end_ns,
  g.time_flag, g.correlation, g.launch_id, g.link_status, g.graph_id, g.graph_node_id, g.external_id, g.bytes, g.copy_kind,
  g.src_memory, g.dst_memory, g.grid_x, g.grid_y, g.grid_z, g.block_x, g.block_y, g.block_z, g.occupancy_pct,
  g.collective_name, g.collective_dtype, g.in_msg_nelems, g.out_msg_nelems, g.group_size, g.process_group_name, g.process_group_ranks, g.collective_seq,
  g.iteration_producer, g.iteration_id, g.iteration_range, g.unresolved_reason, t.start_ns AS trace_start_ns
FROM gpu_events AS g
JOIN selected_traces AS t ON t.trace_id = g.trace_id
WHERE timed(g.start_ns, g.dur_ns, g.time_flag)
  AND (getvariable('device') IS NULL OR g.device = getvariable('device')::BIGINT);

-- That of the selected iteration which starts in the window.
CREATE OR REPLACE VIEW gpu_work AS
SELECT * FROM gpu_work_anytime WHERE in_iteration(iteration_id) AND in_window(start_ns, trace_start_ns);

-- Calls of the runtime or driver whose times count.
CREATE OR REPLACE VIEW launch_calls AS
SELECT
  l.trace_id, t.run, t.rank, l.event_index, l.api, l.start_ns, l.dur_ns, l.start_ns + l.dur_ns AS end_ns, l.pid, l.tid,
  l.correlation, l.external_id, l.stream, l.gpu_event_count, l.iteration_producer, l.iteration_id, l.iteration_range, l.unresolved_reason,
  t.start_ns AS trace_start_ns
FROM launches AS l
JOIN selected_traces AS t ON t.trace_id = l.trace_id
WHERE timed(l.start_ns, l.dur_ns, l.time_flag) AND in_iteration(l.iteration_id) AND in_window(l.start_ns, t.start_ns);

-- A window that orders its rows takes several times as long as to sort them and go
-- through them in order, which an empty OVER does, and a frame from the first row on.
-- What such a running maximum is to be taken of within parts alone is reach(part, ns):
-- later parts reach further than all earlier ones. reached gives back the ns. Parts
-- are numbers of 63 bits, as of part_number.
CREATE OR REPLACE MACRO part_number(a, b, c) AS hash(a, b, c) >> 1;
CREATE OR REPLACE MACRO reach(part, ns) AS part::HUGEINT * 9223372036854775808 + ns;
CREATE OR REPLACE MACRO reached(r, part) AS (r - part::HUGEINT * 9223372036854775808)::BIGINT;

-- The GPUs that there is work of.
CREATE OR REPLACE VIEW gpu_parts AS
SELECT DISTINCT g.trace_id, g.global_pid AS process, g.device, part_number(g.trace_id, g.global_pid, g.device) AS part
FROM gpu_events AS g
JOIN selected_traces AS t ON t.trace_id = g.trace_id;

-- The time that each GPU spends in each mix of classes: how many compute,
-- communication and memory events run from start_ns to end_ns. Sums of these
-- rows are exact unions, up to 131 071 events of a class at a time.
CREATE OR REPLACE VIEW gpu_states AS
WITH work AS ( -- three counts of 17 bits in one number, a double: its sums take half the time of those of integers
  SELECT part_number(trace_id, process, device) AS part, start_ns, end_ns, CASE class WHEN 'compute' THEN 1 WHEN 'communication' THEN 1::BIGINT << 17 ELSE 1::BIGINT << 34 END::DOUBLE AS one FROM gpu_work
),
points AS (
  SELECT part, start_ns AS moment, one FROM work
  UNION ALL
  SELECT part, end_ns, -one FROM work
),
counts AS ( -- all that start end, so that devices begin with 0
  SELECT part, moment, lead(part) OVER () AS next_part, lead(moment) OVER () AS until, sum(one) OVER (ROWS UNBOUNDED PRECEDING) AS n
  FROM (SELECT * FROM points ORDER BY part, moment)
)
SELECT g.trace_id, g.process, g.device, c.moment AS start_ns, c.until AS end_ns, c.n & 131071 AS compute, (c.n >> 17) & 131071 AS communication, c.n >> 34 AS memory
FROM (SELECT part, moment, until, n::BIGINT AS n FROM counts WHERE next_part = part AND until > moment) AS c -- the last of the points at a moment
JOIN gpu_parts AS g ON g.part = c.part;

-- Calls of host code: operators (of category 'Operator' in 2021), Python
-- functions and the like. Nsight Systems has no operators; the NVTX ranges that
-- a thread pushes and pops stand for them, without the numbers that PyTorch
-- writes behind their names.
CREATE OR REPLACE VIEW host_calls AS
SELECT trace_id, event_index, CASE category WHEN 'Operator' THEN 'cpu_op' ELSE category END AS category, coalesce(pid::VARCHAR, pid_text) AS pid, coalesce(tid::VARCHAR, tid_text) AS tid, name, start_ns, dur_ns, time_flag,
  input_dims, input_types, concrete_inputs, flops, external_id, sequence_number, module_hierarchy, call_stack
FROM cpu_events
UNION ALL BY NAME
SELECT trace_id, event_index, 'cpu_op' AS category, pid::VARCHAR AS pid, tid::VARCHAR AS tid,
  regexp_replace(name, ', (seq|op_id|sizes|input_op_ids) = .*', '') AS name, start_ns, dur_ns, time_flag,
  nullif(regexp_extract(name, ', sizes = (\[.*\])', 1), '') AS input_dims
FROM ranges
WHERE category = 'nvtx_push_pop';

-- How many iterations hold what starts on a thread, or in a process, from moment on,
-- and whether the selected one is among them (chosen). Only marks of the family that
-- the iterations of the trace are taken from count; those of stormlog hold what their
-- own thread does. No rows where no iteration is selected.
CREATE OR REPLACE MACRO iteration_spans() AS TABLE
WITH marks AS (
  SELECT r.trace_id, r.iteration_producer, r.iteration_id, coalesce(r.pid::VARCHAR, r.pid_text) AS pid, coalesce(r.tid::VARCHAR, r.tid_text) AS tid, r.start_ns, r.start_ns + r.dur_ns AS end_ns,
    CASE WHEN r.iteration_producer IN ('ProfilerStep', 'sglang', 'vllm', 'xdit') THEN r.iteration_producer WHEN starts_with(r.name, 'stormlog.iteration/') THEN 'stormlog' ELSE 'pattern' END AS family
  FROM ranges AS r
  JOIN selected_traces AS t ON t.trace_id = r.trace_id
  WHERE getvariable('iteration') IS NOT NULL AND r.iteration_id IS NOT NULL AND NOT r.on_gpu AND timed(r.start_ns, r.dur_ns, r.time_flag)
  QUALIFY family = min(CASE WHEN r.iteration_producer = t.iteration_producer THEN family END) OVER (PARTITION BY r.trace_id) -- of the same name a pattern comes first
),
lanes AS (
  SELECT part_number(trace_id, pid, tid) AS lane, iteration_producer, iteration_id, start_ns, end_ns FROM marks
  UNION ALL
  SELECT part_number(trace_id, pid, NULL), iteration_producer, iteration_id, start_ns, end_ns FROM marks WHERE family <> 'stormlog'
),
points AS (
  SELECT lane, iteration_producer, iteration_id, unnest([start_ns, end_ns]) AS moment, unnest([1, -1]) AS d FROM lanes
),
depths AS ( -- marks of an iteration may nest
  SELECT lane, iteration_producer, iteration_id, moment, sum(sum(d)) OVER (PARTITION BY lane, iteration_producer, iteration_id ORDER BY moment) > 0 AS open
  FROM points
  GROUP BY lane, iteration_producer, iteration_id, moment
),
steps AS (
  SELECT lane, iteration_producer, iteration_id, moment, open::INT - coalesce(lag(open) OVER (PARTITION BY lane, iteration_producer, iteration_id ORDER BY moment), false)::INT AS d FROM depths
)
SELECT lane, moment, sum(sum(d)) OVER so_far AS iterations, sum(coalesce(sum(d) FILTER (iteration_id = getvariable('iteration')::VARCHAR), 0)) OVER so_far AS chosen
FROM steps
GROUP BY lane, moment
WINDOW so_far AS (PARTITION BY lane ORDER BY moment);

-- Whether what starts there belongs to the selected iteration, as calls that launch
-- do: the marks of its thread count, or where it has none, those of its process.
CREATE OR REPLACE MACRO held(thread, process) AS
  CASE WHEN thread.iterations > 0 THEN thread.iterations = 1 AND thread.chosen = 1 ELSE coalesce(process.iterations = 1 AND process.chosen = 1, false) END;

-- Calls of host code and ranges, those of the selected iteration where one is; all of
-- them with everywhere. The planner drops the part that has no rows, so that nothing
-- is looked up where no iteration is selected.
CREATE OR REPLACE MACRO chosen_calls(everywhere) AS TABLE
WITH spans AS MATERIALIZED (
  SELECT * FROM iteration_spans()
)
SELECT * FROM host_calls WHERE everywhere OR getvariable('iteration') IS NULL
UNION ALL
SELECT e.*
FROM (SELECT * FROM host_calls WHERE NOT everywhere AND getvariable('iteration') IS NOT NULL AND start_ns >= (SELECT min(moment) FROM spans WHERE chosen > 0)) AS e
ASOF LEFT JOIN spans AS t ON t.lane = part_number(e.trace_id, e.pid, e.tid) AND t.moment <= e.start_ns
ASOF LEFT JOIN spans AS p ON p.lane = part_number(e.trace_id, e.pid, NULL) AND p.moment <= e.start_ns
WHERE held(t, p);

CREATE OR REPLACE MACRO chosen_ranges() AS TABLE
WITH spans AS MATERIALIZED (
  SELECT * FROM iteration_spans()
)
SELECT * FROM ranges WHERE getvariable('iteration') IS NULL
UNION ALL
SELECT r.*
FROM (SELECT * FROM ranges WHERE getvariable('iteration') IS NOT NULL) AS r
ASOF LEFT JOIN spans AS t ON t.lane = part_number(r.trace_id, coalesce(r.pid::VARCHAR, r.pid_text), coalesce(r.tid::VARCHAR, r.tid_text)) AND t.moment <= r.start_ns
ASOF LEFT JOIN spans AS p ON p.lane = part_number(r.trace_id, coalesce(r.pid::VARCHAR, r.pid_text), NULL) AND p.moment <= r.start_ns
WHERE held(t, p);

-- GPU time by the call that launched it, whenever that was.
CREATE OR REPLACE VIEW launched_anytime AS
WITH work AS (
  SELECT trace_id, launch_id, any_value(trace_start_ns) AS trace_start_ns, sum(dur_ns)::BIGINT AS gpu_ns, count(*) AS gpu_events
  FROM gpu_work_anytime
  WHERE launch_id IS NOT NULL
  GROUP BY trace_id, launch_id
)
SELECT l.trace_id, l.pid::VARCHAR AS pid, l.tid::VARCHAR AS tid, l.event_index, l.start_ns, w.gpu_ns, w.gpu_events, l.iteration_id, w.trace_start_ns
FROM work AS w
JOIN launches AS l ON l.trace_id = w.trace_id AND l.event_index = w.launch_id
WHERE l.start_ns IS NOT NULL;

-- Of the selected calls, and its running sum per thread.
CREATE OR REPLACE VIEW launched AS
SELECT trace_id, pid, tid, event_index, start_ns, gpu_ns, gpu_events,
  sum(gpu_ns) OVER (PARTITION BY trace_id, pid, tid ORDER BY start_ns)::BIGINT AS gpu_ns_so_far
FROM launched_anytime
WHERE in_iteration(iteration_id) AND in_window(start_ns, trace_start_ns);

-- Calls of host code whose times count, but for those without a length. wanted is
-- a category such as 'cpu_op' or 'python_function'. Calls of one kind have the
-- same name, and the same shapes and module where these matter. everywhere: whatever
-- iteration, from_ns and to_ns say.
CREATE OR REPLACE MACRO host_timed(wanted, everywhere, by_shape, by_module) AS TABLE
SELECT e.*, part_number(e.trace_id, e.pid, e.tid) AS thread, CASE WHEN by_shape THEN e.input_dims END AS shape, CASE WHEN by_module THEN e.module_hierarchy END AS module,
  hash(e.trace_id, e.name, CASE WHEN by_shape THEN e.input_dims END, CASE WHEN by_module THEN e.module_hierarchy END) AS kind
FROM chosen_calls(everywhere) AS e
JOIN selected_traces AS t ON t.trace_id = e.trace_id
WHERE e.category = wanted AND timed(e.start_ns, e.dur_ns, e.time_flag) AND e.dur_ns > 0 AND (everywhere OR in_window(e.start_ns, t.start_ns));

-- What happens on the threads of those calls, in order: calls start (d is 1) and
-- end (-1), and with_work GPU work is launched (0). From moment to until depth
-- calls are open, and gpu_ns_so_far was launched since the first point.
CREATE OR REPLACE MACRO host_points(wanted, everywhere, with_work, by_shape, by_module) AS TABLE
WITH calls AS MATERIALIZED (
  SELECT thread, kind, event_index, start_ns, start_ns + dur_ns AS end_ns FROM host_timed(wanted, everywhere, by_shape, by_module)
),
points AS ( -- at one moment calls end first, then the longest starts first, then work is launched
  SELECT thread, start_ns AS moment, 1::TINYINT AS d, -end_ns AS place, event_index, kind, NULL::BIGINT AS gpu_ns, NULL::BIGINT AS gpu_events FROM calls
  UNION ALL
  SELECT thread, end_ns, -1::TINYINT, -9223372036854775807, event_index, kind, NULL, NULL FROM calls
  UNION ALL
  SELECT part_number(trace_id, pid, tid), start_ns, 0::TINYINT, 9223372036854775807, event_index, NULL, gpu_ns, gpu_events
  FROM launched_anytime -- a selected call of host code has all that is launched in it
  WHERE with_work
)
SELECT thread, moment, d, event_index, kind, gpu_ns, gpu_events, row_number() OVER () AS point, CASE WHEN lead(thread) OVER () = thread THEN lead(moment) OVER () END AS until,
  lead(d) OVER () AS next, (sum(d::INT) OVER so_far)::INT AS depth, sum(gpu_ns) OVER so_far AS gpu_ns_so_far
FROM (SELECT * FROM points ORDER BY thread, moment, place, event_index)
WINDOW so_far AS (ROWS UNBOUNDED PRECEDING);

-- The same points, with the innermost open call from moment to until, and of a
-- start the call around it (parent).
CREATE OR REPLACE MACRO host_steps(wanted, everywhere, with_work) AS TABLE
WITH points AS MATERIALIZED (
  SELECT *, depth - (d > 0)::INT AS around FROM host_points(wanted, everywhere, with_work, false, false)
)
SELECT p.*, CASE WHEN p.d > 0 THEN p.event_index ELSE o.event_index END AS innermost, CASE WHEN p.d > 0 THEN o.event_index END AS parent
FROM points AS p
ASOF LEFT JOIN (SELECT thread, depth, point, event_index FROM points WHERE d > 0) AS o ON o.thread = p.thread AND o.depth = p.around AND o.point < p.point;

-- The calls of host code, which nest per thread: where each starts or ends and
-- what then is the innermost one. Of all of a trace: what is selected often lies in
-- a call that is not.
CREATE OR REPLACE MACRO host_segments(wanted) AS TABLE
WITH threads AS (
  SELECT DISTINCT trace_id, pid, tid FROM host_calls WHERE category = wanted
)
SELECT
  t.trace_id, t.pid, t.tid, s.moment AS start_ns, s.until AS end_ns,
  s.innermost AS event_index, -- the innermost call from here to end_ns
  CASE WHEN s.d > 0 THEN s.event_index END AS opened, s.depth, s.parent
FROM host_steps(wanted, true, false) AS s
JOIN threads AS t ON part_number(t.trace_id, t.pid, t.tid) = s.thread;

-- The calls of host code with their own and inclusive time on CPU and GPU. GPU
-- time belongs to the innermost call that encloses the launch.
CREATE OR REPLACE MACRO host_tree(wanted) AS TABLE
WITH steps AS MATERIALIZED (
  SELECT * FROM host_steps(wanted, false, true)
),
parts AS ( -- what each step says of a call
  SELECT thread, innermost AS event_index, until - moment AS self_ns, gpu_ns, gpu_events, NULL::HUGEINT AS gpu_total_ns, NULL::INT AS depth, NULL::BIGINT AS parent
  FROM steps WHERE innermost IS NOT NULL
  UNION ALL
  SELECT thread, event_index, NULL, NULL, NULL, -d * coalesce(gpu_ns_so_far, 0), CASE WHEN d > 0 THEN depth END, parent
  FROM steps WHERE d <> 0
),
sums AS (
  SELECT thread, event_index, sum(self_ns)::BIGINT AS self_ns, coalesce(sum(gpu_ns), 0)::BIGINT AS gpu_self_ns, coalesce(sum(gpu_events), 0)::BIGINT AS gpu_events,
    sum(gpu_total_ns)::BIGINT AS gpu_total_ns, max(depth) AS depth, max(parent) AS parent
  FROM parts
  GROUP BY thread, event_index
)
SELECT e.trace_id, e.event_index, e.pid, e.tid, e.name, e.start_ns, e.start_ns + e.dur_ns AS end_ns, e.dur_ns,
  e.input_dims, e.input_types, e.concrete_inputs, e.flops, e.external_id, e.sequence_number, e.module_hierarchy, e.call_stack, s.depth, s.parent,
  coalesce(s.self_ns, 0) AS self_ns, s.gpu_self_ns, s.gpu_events, s.gpu_total_ns
FROM sums AS s
JOIN host_calls AS e ON part_number(e.trace_id, e.pid, e.tid) = s.thread AND e.event_index = s.event_index AND e.category = wanted;

-- Sums of host_tree by kind of call, without looking at calls one by one, for a
-- third of the time.
CREATE OR REPLACE MACRO host_times(wanted, by_shape, by_module) AS TABLE
WITH points AS MATERIALIZED (
  SELECT * FROM host_points(wanted, false, true, by_shape, by_module)
),
opened AS ( -- calls that something happens in
  SELECT thread, depth, point, kind FROM points WHERE d > 0 AND next >= 0
),
parts AS (
  SELECT kind, sum(until - moment) AS self_ns, NULL::HUGEINT AS gpu_ns, NULL::HUGEINT AS gpu_events, -sum(coalesce(gpu_ns_so_far, 0)) AS gpu_total_ns FROM points WHERE d > 0 GROUP BY ALL
  UNION ALL
  SELECT kind, NULL, NULL, NULL, sum(coalesce(gpu_ns_so_far, 0)) FROM points WHERE d < 0 GROUP BY ALL
  UNION ALL
  SELECT o.kind, sum(p.until - p.moment), sum(p.gpu_ns), sum(p.gpu_events), NULL
  FROM (SELECT * FROM points WHERE d <= 0 AND depth > 0 AND (d = 0 OR until > moment)) AS p
  ASOF JOIN opened AS o ON o.thread = p.thread AND o.depth = p.depth AND o.point < p.point
  GROUP BY ALL
),
sums AS (
  SELECT kind, sum(self_ns)::BIGINT AS self_ns, coalesce(sum(gpu_ns), 0)::BIGINT AS gpu_self_ns, coalesce(sum(gpu_events), 0)::BIGINT AS gpu_events, sum(gpu_total_ns)::BIGINT AS gpu_total_ns
  FROM parts
  GROUP BY kind
),
kinds AS (
  SELECT kind, any_value(trace_id) AS trace_id, any_value(name) AS name, any_value(shape) AS shape, any_value(module) AS module, count(*) AS calls, sum(dur_ns)::BIGINT AS dur_ns
  FROM host_timed(wanted, false, by_shape, by_module)
  GROUP BY kind
)
SELECT k.trace_id, k.name, k.shape, k.module, k.calls, k.dur_ns, s.self_ns, s.gpu_total_ns, s.gpu_self_ns, s.gpu_events
FROM kinds AS k
JOIN sums AS s ON s.kind = k.kind;
