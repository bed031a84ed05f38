//go:build noduckdb || !cgo

package query

import "context"

// DB is a database over a dataset.
type DB struct{}

// Open fails with ErrNoDuckDB.
func Open(context.Context, string, Options) (*DB, error) { return nil, ErrNoDuckDB }

// Query fails with ErrNoDuckDB.
func (*DB) Query(context.Context, string) (Rows, error) { return nil, ErrNoDuckDB }

// Analyze fails with ErrNoDuckDB.
func (*DB) Analyze(context.Context, Analysis) (Rows, error) { return nil, ErrNoDuckDB }

// Exec fails with ErrNoDuckDB.
func (*DB) Exec(context.Context, string) error { return ErrNoDuckDB }

// Set fails with ErrNoDuckDB.
func (*DB) Set(context.Context, string, any) error { return ErrNoDuckDB }

// Select fails with ErrNoDuckDB.
func (*DB) Select(context.Context, map[string]any) error { return ErrNoDuckDB }

// TrustLine fails with ErrNoDuckDB.
func (*DB) TrustLine(context.Context) (string, error) { return "", ErrNoDuckDB }

// Close does nothing.
func (*DB) Close() error { return nil }
