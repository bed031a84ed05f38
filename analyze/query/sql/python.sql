-- title: Python frames
-- what it answers: Which Python functions cause the GPU work, and where does Python itself spend time?
--   self is without the frames inside. --iteration, --from and --to choose frames by their start, with all GPU
--   work that they launch.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: Python frames of PyTorch (with_stack), which Nsight Systems does not write as calls
-- parameters:
--   top  rows; default 25
-- columns and units:
--   frame         file(line): function
--   calls         calls
--   gpu_total_ms  GPU time launched in them, ms
--   gpu_self_ms   GPU time launched in them and not in frames inside, ms
--   cpu_total_ms  their time on the CPU, ms
--   cpu_self_ms   the same without frames inside, ms
SELECT
  name AS frame,
  sum(calls)::BIGINT AS calls,
  round(sum(gpu_total_ns) / 1e6, 3) AS gpu_total_ms,
  round(sum(gpu_self_ns) / 1e6, 3) AS gpu_self_ms,
  round(sum(dur_ns) / 1e6, 3) AS cpu_total_ms,
  round(sum(self_ns) / 1e6, 3) AS cpu_self_ms
FROM host_times('python_function', false, false)
GROUP BY ALL
ORDER BY sum(gpu_total_ns) DESC, sum(self_ns) DESC, frame
LIMIT coalesce(getvariable('top')::BIGINT, 25);
