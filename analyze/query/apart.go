//go:build cgo && !noduckdb

package query

import (
	"cmp"
	"context"
	"errors"
	"io"
)

// batchEvents is how much GPU work and how many calls traces may have together
// to be looked at in one go: a few hundred bytes of memory for each.
var batchEvents int64 = 500_000

// Analyze answers an analysis. One whose traces stand apart is asked for a
// few traces at a time, so that its memory does not grow with the dataset. Where
// it would ignore a variable that is set, it is refused with ErrSelection.
func (db *DB) Analyze(ctx context.Context, a Analysis) (Rows, error) {
	for _, s := range Selections {
		err := a.Heeds(s.Variable)
		if err == nil {
			continue
		}
		if set, failed := db.isSet(ctx, s.Variable); failed != nil || set {
			return nil, cmp.Or(failed, err)
		}
	}
	if !a.Apart {
		return db.Query(ctx, a.SQL)
	}
	batches, err := db.batches(ctx)
	if err != nil {
		return nil, err
	}
	if len(batches) < 2 {
		return db.Query(ctx, a.SQL)
	}
	r := &apartRows{ctx: ctx, db: db, sql: a.SQL, batches: batches}
	if err := r.advance(); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

// isSet reports whether a variable has a value.
func (db *DB) isSet(ctx context.Context, variable string) (set bool, err error) {
	rows, err := db.Query(ctx, "SELECT getvariable("+quote(variable)+") IS NOT NULL")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	v := make([]any, 1)
	if err := rows.Next(v); err != nil {
		return false, err
	}
	set, _ = v[0].(bool)
	return set, nil
}

// batches returns the selected traces, in the order of answers; none where a
// caller names traces.
func (db *DB) batches(ctx context.Context) (out [][]string, err error) {
	rows, err := db.Query(ctx, "SELECT trace_id, gpu_events + launches FROM selected_traces WHERE getvariable('traces') IS NULL ORDER BY run, rank, trace_id")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var sum int64
	for v := make([]any, 2); ; {
		if err := rows.Next(v); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		events, _ := v[1].(int64)
		if sum += events; len(out) == 0 || sum > batchEvents {
			out, sum = append(out, nil), events
		}
		out[len(out)-1] = append(out[len(out)-1], v[0].(string))
	}
}

// apartRows are the rows of one batch of traces after the other.
type apartRows struct {
	ctx     context.Context
	db      *DB
	sql     string
	batches [][]string // still to be asked for
	rows    Rows       // of the present one; nil between two
	columns []Column
}

func (r *apartRows) advance() error {
	if err := r.db.Set(r.ctx, "traces", r.batches[0]); err != nil {
		return err
	}
	r.batches = r.batches[1:]
	rows, err := r.db.Query(r.ctx, r.sql)
	if err == nil {
		r.rows, r.columns = rows, rows.Columns()
	}
	return err
}

func (r *apartRows) Columns() []Column { return r.columns }

func (r *apartRows) Next(dest []any) error {
	for {
		if r.rows == nil {
			return io.EOF // after an error
		}
		err := r.rows.Next(dest)
		if !errors.Is(err, io.EOF) || len(r.batches) == 0 {
			return err
		}
		if err := r.close(); err != nil {
			return err
		}
		if err := r.advance(); err != nil {
			return err
		}
	}
}

func (r *apartRows) Close() error {
	return errors.Join(r.close(), r.end())
}

// close closes the rows of the present batch, where there is one.
func (r *apartRows) close() error {
	if r.rows == nil {
		return nil
	}
	rows := r.rows
	r.rows = nil
	return rows.Close()
}

// end selects what was selected before.
func (r *apartRows) end() error {
	return r.db.Exec(context.WithoutCancel(r.ctx), "RESET VARIABLE traces")
}
