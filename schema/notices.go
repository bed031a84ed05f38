package schema

// runNotices adds to the view of diagnostics what only a run as a whole can
// tell. It depends on traces alone, so that a rank imported later takes its
// notice away, and no order of imports changes it.
const runNotices = `
  UNION ALL BY NAME
  SELECT t.trace_id, 'same_rank' AS code, 'notice' AS severity, NULL::BIGINT AS byte_offset, NULL::BIGINT AS event_index,
    1::BIGINT AS count, 'run ' || t.run || ': ' || r.n || ' traces state rank ' || t.rank AS message, t.run, t.rank
  FROM traces AS t JOIN (
    SELECT run, rank, count(*) AS n FROM traces WHERE outcome <> 'rejected' AND rank IS NOT NULL GROUP BY run, rank HAVING count(*) > 1
  ) AS r ON r.run = t.run AND r.rank = t.rank
  WHERE t.outcome <> 'rejected'
  UNION ALL BY NAME
  SELECT m.trace_id, 'missing_ranks' AS code, 'notice' AS severity, NULL::BIGINT AS byte_offset, NULL::BIGINT AS event_index,
    m.missing AS count, 'run ' || m.run || ': ' || m.missing || ' of ' || m.world || ' ranks are missing, first ' || (
      SELECT string_agg(r, ', ' ORDER BY r) FROM (
        SELECT r FROM range(0, least(m.world, m.present + 16)) AS x(r)
        WHERE NOT EXISTS (SELECT 1 FROM traces AS p WHERE p.run = m.run AND p.rank = x.r AND p.outcome <> 'rejected')
        ORDER BY r LIMIT 16)
    ) AS message, m.run, -1::BIGINT AS rank
  FROM (
    SELECT run, min(trace_id) AS trace_id, max(world_size) AS world, count(DISTINCT rank) AS present,
      max(world_size) - count(DISTINCT rank) FILTER (WHERE rank >= 0 AND rank < w) AS missing
    FROM (SELECT *, max(world_size) OVER (PARTITION BY run) AS w FROM traces WHERE outcome <> 'rejected')
    GROUP BY run HAVING count(rank) > 0
  ) AS m WHERE m.missing > 0`
