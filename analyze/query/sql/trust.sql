-- title: Can the figures be trusted?
-- what it answers: What is missing, guessed or damaged in each trace, and which analyses does it affect?
--   The verdict is good where nothing below was found, fair where something was that changes some figures, and poor where
--   a tenth of the GPU work or more is concerned.
-- selects: run, rank, trace
-- needs: traces
-- columns and units:
--   run                     run of the trace
--   rank                    rank; null where nothing tells it
--   trace_id                trace
--   verdict                 good, fair or poor
--   affects                 what was found and what it changes
--   outcome                 ok, repaired or partial
--   gpu_events              GPU events
--   linked_pct              GPU events linked to their launch, %
--   ambiguous               GPU events with more than one possible launch
--   excluded                GPU events left out of all times, because their own are negative, missing or lost
--   overruns                GPU events that run over the next start on their stream
--   graph_events            graph launches recorded as a whole, without their kernels
--   idle_launches           launching calls without GPU work
--   launching_calls         calls that launch work
--   lost_events             events that could not be read
--   missing_ranks           ranks of the run that have no trace
WITH gpu AS (
  SELECT
    g.trace_id,
    count(*) FILTER (NOT timed(g.start_ns, g.dur_ns, g.time_flag)) AS excluded,
    count(*) FILTER (g.time_flag = 'overruns_next') AS overruns,
    count(*) FILTER (g.kind = 'gpu_graph') AS graph_events
  FROM gpu_events AS g SEMI JOIN selected_traces AS t ON t.trace_id = g.trace_id
  GROUP BY ALL
),
calls AS ( -- by name first: there are few
  SELECT trace_id, sum(calls)::BIGINT AS launching_calls, sum(idle)::BIGINT AS idle_launches
  FROM (SELECT trace_id, api, count(*) AS calls, count(*) FILTER (gpu_event_count = 0) AS idle FROM launches GROUP BY ALL)
  WHERE regexp_matches(api, '(?i)launch(kernel|cooperative|graph)|graphlaunch|launchkernel')
  GROUP BY ALL
),
runs AS (
  SELECT run, max(world_size) AS world, count(DISTINCT rank) AS ranks FROM traces WHERE outcome <> 'rejected' AND rank IS NOT NULL GROUP BY ALL
),
found AS (
  SELECT
    t.*, coalesce(g.excluded, 0) AS excluded, coalesce(g.overruns, 0) AS overruns, coalesce(g.graph_events, 0) AS graph_events,
    coalesce(c.idle_launches, 0) AS idle_launches, coalesce(c.launching_calls, 0) AS launching_calls,
    coalesce(r.world - r.ranks, 0) AS missing_ranks,
    t.gpu_events - t.linked_gpu_events - t.ambiguous_gpu_events AS unlinked
  FROM selected_traces AS t
  LEFT JOIN gpu AS g ON g.trace_id = t.trace_id
  LEFT JOIN calls AS c ON c.trace_id = t.trace_id
  LEFT JOIN runs AS r ON r.run = t.run
),
listed AS (
  SELECT *, list_filter([
    CASE WHEN gpu_events = 0 THEN 'no GPU events: only CPU analyses have rows' END,
    CASE WHEN unlinked > 0 THEN unlinked || ' unlinked GPU events: launches, ops, python and iterations miss their time' END,
    CASE WHEN ambiguous_gpu_events > 0 THEN ambiguous_gpu_events || ' GPU events with several possible launches: as if unlinked' END,
    CASE WHEN excluded > 0 THEN excluded || ' GPU events without usable times: left out of all times' END,
    CASE WHEN overruns > 0 THEN overruns || ' GPU events overrun the next on their stream: sums are too high, unions are not' END,
    CASE WHEN graph_events > 0 THEN graph_events || ' graph launches as a whole: busy time is right, kernels inside are unknown' END,
    CASE WHEN lost_events > 0 THEN lost_events || ' events could not be read: counts and sums are too low' END,
    CASE WHEN outcome = 'partial' AND lost_events = 0 THEN 'the file is incomplete: ' || coalesce(outcome_reason, 'cut off') END,
    CASE WHEN missing_ranks > 0 THEN missing_ranks || ' ranks have no trace: collectives and stragglers see the others only' END,
    CASE WHEN clock = 'relative' THEN 'times count from an unknown moment: ranks cannot be compared in time' END
  ], lambda x: x IS NOT NULL) AS notes
  FROM found
)
SELECT
  run, rank, trace_id,
  CASE
    WHEN gpu_events > 0 AND 10 * (unlinked + ambiguous_gpu_events + excluded) >= gpu_events OR 10 * lost_events >= events AND lost_events > 0 THEN 'poor'
    WHEN len(notes) > 0 THEN 'fair'
    ELSE 'good' END AS verdict,
  array_to_string(notes, '; ') AS affects,
  outcome, gpu_events,
  round(100.0 * linked_gpu_events / nullif(gpu_events, 0), 2) AS linked_pct,
  ambiguous_gpu_events AS ambiguous, excluded, overruns, graph_events, idle_launches, launching_calls, lost_events, missing_ranks
FROM listed
ORDER BY run, rank, trace_id;
