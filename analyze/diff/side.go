package diff

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"tracelake/analyze/query"
)

//go:embed kernels.sql
var kernelsSQL string

//go:embed ops.sql
var opsSQL string

//go:embed totals.sql
var totalsSQL string

// By is what is compared.
type By string

// What can be compared.
const (
	Kernels By = "kernels" // kernels, copies and sets
	Ops     By = "ops"     // operators
)

// Key tells what matches on both sides.
type Key struct{ Kind, Name, Shape, Class string }

// usage is what one trace spends on a key.
type usage struct{ count, totalNS int64 }

// totals are what a trace spends altogether.
type totals struct{ busyNS, summedNS, gpuEvents, iterations, iterationNS int64 }

// Side is one side of a comparison.
type Side struct {
	traces []totals
	use    map[Key]map[int]usage // by position in traces
}

// Traces returns the number of traces.
func (s *Side) Traces() int { return len(s.traces) }

// ReadSide reads what the variables of a database select.
func ReadSide(ctx context.Context, db *query.DB, by By) (*Side, error) {
	s := &Side{use: map[Key]map[int]usage{}}
	at := map[string]int{}
	err := each(ctx, db, totalsSQL, 6, func(v []any) {
		at[v[0].(string)] = len(s.traces)
		s.traces = append(s.traces, totals{v[1].(int64), v[2].(int64), v[3].(int64), v[4].(int64), v[5].(int64)})
	})
	if err != nil {
		return nil, err
	}
	script := kernelsSQL
	if by == Ops {
		script = opsSQL
	}
	return s, each(ctx, db, script, 7, func(v []any) {
		k := Key{v[1].(string), v[2].(string), v[3].(string), v[4].(string)}
		if s.use[k] == nil {
			s.use[k] = map[int]usage{}
		}
		s.use[k][at[v[0].(string)]] = usage{v[5].(int64), v[6].(int64)}
	})
}

func each(ctx context.Context, db *query.DB, script string, columns int, do func([]any)) (err error) {
	rows, err := db.Query(ctx, script)
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	v := make([]any, columns)
	for {
		if err := rows.Next(v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("diff: %w", err)
		}
		do(v)
	}
}
