-- title: Slowest ranks
-- what it answers: Which rank made the others wait in each iteration, and what did it do instead?
--   Ranks wait for each other in collectives, so the one that waits least is the one that the others wait for: the
--   straggler is the rank with the least communication time where ranks communicate, else the one with the longest
--   iteration. Several traces of a rank are windows, of which the n-th of each rank are compared.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: iterations that several ranks of a run share
-- columns and units:
--   run             run
--   producer        who marked the iteration
--   iteration       its ID
--   nth_trace       which of the traces of a rank it is in, by their start
--   ranks           ranks that have it
--   straggler       rank that the others wait for
--   wall_ms         its iteration on the CPU, ms
--   median_wall_ms  median over the ranks, ms
--   extra_compute_ms       its summed compute kernels over the median of the ranks, ms
--   less_communication_ms  its communication under the median of the ranks, ms
--   extra_gap_ms    its time without GPU work over the median, ms
--   does_instead    kernel, copy or set with the largest excess over the mean of the ranks
WITH places AS (
  SELECT t.trace_id, t.run, t.rank, t.start_ns, row_number() OVER (PARTITION BY t.run, t.rank ORDER BY t.start_ns, t.trace_id) AS nth
  FROM selected_traces AS t SEMI JOIN (SELECT trace_id FROM ranges WHERE iteration_id IS NOT NULL AND NOT on_gpu) AS r ON r.trace_id = t.trace_id
  WHERE t.rank IS NOT NULL
),
work AS (
  SELECT trace_id, iteration_producer AS producer, iteration_id AS iteration, class, name, sum(dur_ns) AS ns
  FROM gpu_work WHERE iteration_id IS NOT NULL AND rank IS NOT NULL
  GROUP BY ALL
),
busy AS (
  SELECT trace_id, iteration_producer AS producer, iteration_id AS iteration, busy_ns(start_ns, end_ns) AS ns
  FROM gpu_work WHERE iteration_id IS NOT NULL AND rank IS NOT NULL
  GROUP BY ALL
),
marks AS (
  SELECT t.run, t.nth, t.rank, r.trace_id, r.iteration_producer AS producer, r.iteration_id AS iteration, max(r.start_ns + r.dur_ns) - min(r.start_ns) AS wall_ns
  FROM ranges AS r JOIN places AS t ON t.trace_id = r.trace_id
  WHERE r.iteration_id IS NOT NULL AND NOT r.on_gpu AND timed(r.start_ns, r.dur_ns, r.time_flag) AND in_window(r.start_ns, t.start_ns)
    AND (getvariable('iteration') IS NULL OR r.iteration_id = getvariable('iteration')::VARCHAR)
  GROUP BY ALL
),
sums AS (
  SELECT m.run, m.nth, m.rank, m.trace_id, m.producer, m.iteration, m.wall_ns,
    coalesce(sum(w.ns) FILTER (w.class = 'compute'), 0) AS compute_ns,
    coalesce(sum(w.ns) FILTER (w.class = 'communication'), 0) AS communication_ns,
    greatest(m.wall_ns - coalesce(any_value(b.ns), 0), 0) AS gap_ns
  FROM marks AS m
  LEFT JOIN work AS w ON w.trace_id = m.trace_id AND w.producer = m.producer AND w.iteration = m.iteration
  LEFT JOIN busy AS b ON b.trace_id = m.trace_id AND b.producer = m.producer AND b.iteration = m.iteration
  GROUP BY m.run, m.nth, m.rank, m.trace_id, m.producer, m.iteration, m.wall_ns
),
ranked AS (
  SELECT *,
    count(*) OVER p AS ranks, median(wall_ns) OVER p AS wall_median, median(compute_ns) OVER p AS compute_median,
    median(communication_ns) OVER p AS communication_median, median(gap_ns) OVER p AS gap_median,
    row_number() OVER (PARTITION BY run, nth, producer, iteration ORDER BY communication_ns, wall_ns DESC, rank) AS place
  FROM sums
  WINDOW p AS (PARTITION BY run, nth, producer, iteration)
),
kernels AS (
  SELECT trace_id, producer, iteration, name, sum(ns) AS ns FROM work WHERE class <> 'communication' GROUP BY ALL
),
excess AS ( -- a rank without the kernel counts with 0
  SELECT k.trace_id, k.producer, k.iteration, k.name, k.ns - sum(k.ns) OVER (PARTITION BY r.run, r.nth, k.producer, k.iteration, k.name) / r.ranks AS more
  FROM kernels AS k
  JOIN ranked AS r ON r.trace_id = k.trace_id AND r.producer = k.producer AND r.iteration = k.iteration
),
instead AS (
  SELECT trace_id, producer, iteration, arg_max(name, (more, name)) AS name FROM excess WHERE more > 0 GROUP BY ALL
)
SELECT
  r.run, r.producer, r.iteration, r.nth AS nth_trace, r.ranks, r.rank AS straggler,
  round(r.wall_ns / 1e6, 3) AS wall_ms,
  round(r.wall_median / 1e6, 3) AS median_wall_ms,
  round((r.compute_ns - r.compute_median) / 1e6, 3) AS extra_compute_ms,
  round((r.communication_median - r.communication_ns) / 1e6, 3) AS less_communication_ms,
  round((r.gap_ns - r.gap_median) / 1e6, 3) AS extra_gap_ms,
  i.name AS does_instead
FROM ranked AS r
LEFT JOIN instead AS i ON i.trace_id = r.trace_id AND i.producer = r.producer AND i.iteration = r.iteration
WHERE r.place = 1 AND r.ranks > 1
ORDER BY r.run, r.nth, r.producer, try_cast(r.iteration AS BIGINT), r.iteration;
