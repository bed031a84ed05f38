-- title: Operators
-- what it answers: Which operators take the time, on the CPU and by the GPU work that they launch, themselves and with what they call?
--   self is without the operators inside; GPU time belongs to the innermost operator that encloses the launch. Totals of
--   an operator that calls itself count twice. The backward pass has operators of its own, on its own thread. --iteration,
--   --from and --to choose operators by their start, with all GPU work that they launch.
--   Traces of Nsight Systems have no operators: their NVTX ranges (pushed and popped) stand for them.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: operators, or NVTX ranges in their place
-- parameters:
--   group_by   name (the default), shape (name and input sizes), or module (module hierarchy, where the trace has it)
--   top  rows; default 25
-- columns and units:
--   name          operator
--   shape         input sizes, with group_by = 'shape'
--   module        module, with group_by = 'module'
--   calls         calls
--   cpu_total_ms  their time on the CPU, ms
--   cpu_self_ms   the same without operators inside, ms
--   gpu_total_ms  GPU time launched in them, ms
--   gpu_self_ms   GPU time launched in them and not in operators inside, ms
--   gpu_events    GPU events of gpu_self_ms
--   gpu_share_pct part of the GPU time of all operators, %
SELECT
  name, shape, module,
  sum(calls)::BIGINT AS calls,
  round(sum(dur_ns) / 1e6, 3) AS cpu_total_ms,
  round(sum(self_ns) / 1e6, 3) AS cpu_self_ms,
  round(sum(gpu_total_ns) / 1e6, 3) AS gpu_total_ms,
  round(sum(gpu_self_ns) / 1e6, 3) AS gpu_self_ms,
  sum(gpu_events)::BIGINT AS gpu_events,
  round(100.0 * sum(gpu_self_ns) / nullif(sum(sum(gpu_self_ns)) OVER (), 0), 2) AS gpu_share_pct
FROM host_times('cpu_op',
  CASE coalesce(getvariable('group_by')::VARCHAR, 'name') WHEN 'shape' THEN true WHEN 'name' THEN false WHEN 'module' THEN false
    ELSE error('group_by: ' || getvariable('group_by') || ' is none of name, shape, module') END,
  coalesce(getvariable('group_by')::VARCHAR = 'module', false))
GROUP BY ALL
ORDER BY sum(gpu_self_ns) DESC, sum(self_ns) DESC, name, shape, module
LIMIT coalesce(getvariable('top')::BIGINT, 25);
