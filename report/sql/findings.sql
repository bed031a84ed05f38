-- title: What limits the figures
-- what it answers: What was found missing, guessed or damaged, and what does it change?
-- columns and units:
--   finding  what was found and what it changes
--   traces   traces with it
--   events   events concerned, over these traces; null where it does not count events
SELECT
  regexp_replace(note, '^[0-9]+ ', '') AS finding,
  count(*) AS traces,
  CASE WHEN any_value(note) LIKE '%ranks have no trace%' THEN NULL ELSE sum(try_cast(regexp_extract(note, '^[0-9]+') AS BIGINT))::BIGINT END AS events
FROM (SELECT unnest(string_split(affects, '; ')) AS note FROM report_trust WHERE affects <> '')
GROUP BY 1
ORDER BY traces DESC, events DESC NULLS LAST, finding;
