-- title: Inputs
-- what it answers: Which files do the figures come from? Without a selection of run, rank or trace, inputs that were rejected or
--   have the content of another one are listed too; no figure counts them.
-- columns and units:
--   run               run
--   rank              rank; null where nothing tells it
--   trace_id          trace
--   path              path as it was given
--   source            kineto or nsys
--   outcome           ok, repaired, partial, rejected or duplicate
--   source_bytes      size of the file as stored
--   content_digest    BLAKE3-256 of the content
--   importer_version  version of tracelake that imported it
SELECT run, rank, trace_id, path, source, CASE WHEN duplicate_of IS NOT NULL THEN 'duplicate' ELSE outcome END AS outcome,
  source_bytes, content_digest, importer_version
FROM traces
WHERE trace_id IN (SELECT trace_id FROM selected_traces)
  OR ((outcome = 'rejected' OR duplicate_of IS NOT NULL) AND getvariable('run') IS NULL AND getvariable('rank') IS NULL AND getvariable('trace') IS NULL)
ORDER BY run, rank, trace_id, path;
