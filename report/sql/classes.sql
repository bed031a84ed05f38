-- title: GPU time by class
-- what it answers: How much of the summed time of kernels is computing, and how much communication?
-- columns and units:
--   class      compute, communication or memory
--   kernels    distinct names
--   events     events
--   total_ns   sum of their durations, ns
--   share_pct  part of the sum, %
SELECT class, count(*) AS kernels, sum(events)::BIGINT AS events, sum(total_ns)::BIGINT AS total_ns,
  round(100.0 * sum(total_ns) / nullif(sum(sum(total_ns)) OVER (), 0), 2) AS share_pct
FROM report_kernels
GROUP BY class
ORDER BY sum(total_ns) DESC, class;
