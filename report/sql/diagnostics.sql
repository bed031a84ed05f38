-- title: Diagnostics
-- what it answers: What did the import notice, repair, set aside or lose?
-- columns and units:
--   severity  data_loss, error, repair, notice or info
--   code      what was noticed
--   count     occurrences
--   traces    traces with it
--   example   what was found in one of them
SELECT d.severity, d.code, sum(d.count)::BIGINT AS count, count(DISTINCT d.trace_id) AS traces, min(d.message) AS example
FROM diagnostics AS d
WHERE d.trace_id IN (SELECT trace_id FROM report_inputs)
GROUP BY d.severity, d.code
ORDER BY list_position(['error', 'data_loss', 'repair', 'notice', 'info'], d.severity), sum(d.count) DESC, d.code;
