-- title: One side of a comparison by operator
-- what it answers: How often is each operator called in each selected trace, and how long does it take itself, without operators inside?
-- columns and units:
--   trace_id  trace
--   kind      op_cpu: its own time on the CPU; op_gpu: GPU time that it launched itself
--   name      operator
--   shape     input sizes, where the trace has them
--   class     empty
--   count     calls
--   total_ns  time, ns
WITH tree AS MATERIALIZED (
  SELECT trace_id, coalesce(name, '') AS name, coalesce(input_dims, '') AS shape, count(*) AS calls,
    sum(self_ns)::BIGINT AS cpu_ns, sum(gpu_self_ns)::BIGINT AS gpu_ns, count(*) FILTER (gpu_events > 0) AS launching
  FROM host_tree('cpu_op')
  GROUP BY ALL
)
SELECT trace_id, 'op_cpu' AS kind, name, shape, '' AS class, calls AS count, cpu_ns AS total_ns FROM tree
UNION ALL
SELECT trace_id, 'op_gpu', name, shape, '', launching, gpu_ns FROM tree WHERE launching > 0
ORDER BY ALL;
