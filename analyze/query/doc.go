// Package query answers questions about a dataset with an embedded DuckDB: a
// view per table over the committed files, a catalogue of analyses that are
// plain .sql files, and printers for the results.
//
// The engine needs cgo. Built without it, or with the tag noduckdb, Open fails
// with ErrNoDuckDB and everything else works.
//
//go:generate go run ./internal/gen ../../docs/analyses.md
package query
