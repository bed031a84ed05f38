//go:build cgo && !noduckdb

package query

import (
	"context"
	"fmt"
	"strings"
)

// TrustLine says in one line how far the selected traces can be trusted.
func (db *DB) TrustLine(ctx context.Context) (string, error) {
	a, ok := Lookup("trust")
	if !ok {
		panic("BUG: no analysis trust")
	}
	sql := strings.TrimRight(strings.TrimSpace(a.SQL), ";")
	rows, err := db.Query(ctx, `SELECT count(*) AS traces, count(*) FILTER (verdict = 'good') AS good, count(*) FILTER (verdict = 'fair') AS fair,
  count(*) FILTER (verdict = 'poor') AS poor, arg_max(affects, CASE verdict WHEN 'poor' THEN 2 WHEN 'fair' THEN 1 ELSE 0 END) AS worst
FROM (`+sql+`)`)
	if err != nil {
		return "", err
	}
	defer rows.Close() //nolint:errcheck // only read
	v := make([]any, 5)
	if err := rows.Next(v); err != nil {
		return "", err
	}
	line := fmt.Sprintf("trust: %v traces, %v good, %v fair, %v poor", v[0], v[1], v[2], v[3])
	if n, _ := v[0].(int64); n == 0 {
		return "trust: no trace is selected", nil
	}
	if worst, _ := v[4].(string); worst != "" {
		line += "; for example: " + worst
	}
	return line, nil
}
