-- title: Frequent kernel sequences
-- what it answers: Which sequences of kernels repeat on a stream, and how much time do they take?
--   Candidates for fusion. Sequences overlap: each kernel starts one.
-- selects: run, rank, trace, device, iteration, from, to
-- needs: kernels, and sequences that occur twice
-- parameters:
--   length  kernels in a sequence; default 3
--   top     rows; default 25
-- columns and units:
--   sequence   names in order
--   count      times that the sequence occurs
--   kernel_ms  summed time of its kernels, ms
--   wall_ms    summed time from its first start to its last end, ms
--   gap_us     mean time between its kernels, µs
WITH ordered AS ( -- numbers for names: lists of texts take three times as long
  SELECT
    list(hash(name)) OVER w AS names, sum(dur_ns) OVER w AS kernel_ns, max(end_ns) OVER w - start_ns AS wall_ns
  FROM gpu_work
  WHERE kind = 'gpu_kernel'
  WINDOW w AS (PARTITION BY hash(trace_id, process, device, stream) ORDER BY start_ns, event_index ROWS BETWEEN CURRENT ROW AND (coalesce(getvariable('length')::BIGINT, 3) - 1) FOLLOWING)
),
sequences AS (
  SELECT names, count(*) AS count, sum(kernel_ns) AS kernel_ns, sum(wall_ns) AS wall_ns, avg(greatest(wall_ns - kernel_ns, 0)) AS gap_ns
  FROM ordered
  WHERE len(names) = coalesce(getvariable('length')::BIGINT, 3)
  GROUP BY names
  HAVING count(*) > 1
),
texts AS (
  SELECT map_from_entries(list((hash(name), name))) AS of FROM (SELECT DISTINCT name FROM gpu_work WHERE kind = 'gpu_kernel')
)
SELECT
  array_to_string(list_transform(names, lambda n: texts.of[n]), ' → ') AS sequence,
  count,
  round(kernel_ns / 1e6, 3) AS kernel_ms,
  round(wall_ns / 1e6, 3) AS wall_ms,
  round(gap_ns / 1e3, 3) AS gap_us
FROM sequences, texts
ORDER BY count DESC, kernel_ms DESC, sequence
LIMIT coalesce(getvariable('top')::BIGINT, 25);
