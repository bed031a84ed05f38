// Package lake lays a dataset out in a directory and commits traces to it.
//
//	LAKE/<table>/run=<slug>/rank=<n>/part-<12 hex>.parquet
//	LAKE/traces/part-<12 hex>.parquet
//	LAKE/_tracelake/format.json
//	LAKE/_tracelake/commits/<trace_id>.json
//
// A trace exists if and only if its commit does. Files are written below
// LAKE/_tracelake/.tmp-*, made durable, renamed into place, and only then is
// the commit created, so that a killed writer leaves nothing that counts as
// data. Several processes may write to one lake at the same time.
//
// Nothing but Parquet files ever stands below a table, because readers that
// scan a directory fail on anything else.
package lake
