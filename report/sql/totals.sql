-- title: Totals
-- what it answers: What is in the report altogether?
-- columns and units:
--   traces       traces
--   runs         runs
--   ranks        largest number of ranks in a run
--   devices      devices with GPU work
--   gpu_events   GPU events
--   linked_pct   GPU events linked to their launch, %
--   window_ns    first start to last end of GPU work, summed over devices, ns
--   busy_ns      time with at least one event running, summed over devices, ns
--   idle_ns      window_ns without busy_ns, ns
--   compute_ns   time with a kernel running that is no collective, ns
--   communication_ns  time with a collective running, ns
--   exposed_communication_ns  communication without computing, ns
--   exposed_memory_ns  copies and sets alone, ns
--   busy_pct     busy_ns of window_ns, %
--   good         traces with the verdict good
--   fair         traces with the verdict fair
--   poor         traces with the verdict poor
--   rejected     inputs of the dataset that could not be imported
--   duplicates   inputs of the dataset with the content of another one
WITH d AS (
  SELECT count(*) AS devices, sum(window_ns)::BIGINT AS window_ns, sum(busy_ns)::BIGINT AS busy_ns, sum(idle_ns)::BIGINT AS idle_ns,
    sum(compute_ns)::BIGINT AS compute_ns, sum(communication_ns)::BIGINT AS communication_ns,
    sum(exposed_communication_ns)::BIGINT AS exposed_communication_ns, sum(exposed_memory_ns)::BIGINT AS exposed_memory_ns
  FROM report_devices
),
t AS (
  SELECT count(*) AS traces, count(DISTINCT run) AS runs, sum(gpu_events)::BIGINT AS gpu_events,
    round(100.0 * sum(linked_pct * gpu_events / 100) / nullif(sum(gpu_events), 0), 2) AS linked_pct,
    count(*) FILTER (verdict = 'good') AS good, count(*) FILTER (verdict = 'fair') AS fair, count(*) FILTER (verdict = 'poor') AS poor
  FROM report_trust
),
r AS (
  SELECT max(ranks) AS ranks FROM (SELECT count(DISTINCT rank) AS ranks FROM report_trust GROUP BY run)
),
n AS (
  SELECT count(*) FILTER (outcome = 'rejected') AS rejected, count(*) FILTER (duplicate_of IS NOT NULL) AS duplicates FROM traces
)
SELECT t.traces, t.runs, r.ranks, d.devices, t.gpu_events, t.linked_pct,
  d.window_ns, d.busy_ns, d.idle_ns, d.compute_ns, d.communication_ns, d.exposed_communication_ns, d.exposed_memory_ns,
  round(100.0 * d.busy_ns / nullif(d.window_ns, 0), 2) AS busy_pct,
  t.good, t.fair, t.poor, n.rejected, n.duplicates
FROM t, d, r, n;
