package report

import (
	"context"
	"errors"
	"fmt"

	"tracelake/analyze/query"
)

// readPaths runs the source for each iteration that paths.sql chose, one at a
// time: to walk the path of every iteration of a dataset takes far longer than
// all else. Where several ranges mark the iteration, the longest path stays. What
// the user selected is restored.
func (s source) readPaths(ctx context.Context, db *query.DB) (err error) {
	chosen, err := collect(ctx, db, "SELECT trace_id, iteration, producer FROM report_paths WHERE walked", nil)
	if err != nil {
		return err
	}
	before, err := collect(ctx, db, "SELECT getvariable('trace')::VARCHAR, getvariable('iteration')::VARCHAR, NULL", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, selectIteration(ctx, db, before[0])) }()
	a, err := s.analysis()
	if err != nil {
		return err
	}
	// Without a chosen iteration the table is there, with no rows.
	if err := db.Exec(ctx, create(s.table(), "SELECT * FROM (\n"+trimmed(a.SQL)+"\n) LIMIT 0")); err != nil {
		return err
	}
	drop, err := narrow(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	for _, one := range chosen {
		if err := selectIteration(ctx, db, one); err != nil {
			return err
		}
		longest := "INSERT INTO " + s.table() + " SELECT * FROM (\n" + trimmed(a.SQL) + "\n) WHERE producer IS NOT DISTINCT FROM getvariable('report_producer') QUALIFY path_ms = max(path_ms) OVER ()"
		if err := db.Exec(ctx, longest); err != nil {
			return fmt.Errorf("%s of trace %v: %w", s.name, one[0], err)
		}
	}
	return nil
}

// selectIteration sets the variables that select a trace, an iteration and who
// marked it; nil selects all.
func selectIteration(ctx context.Context, db *query.DB, values []any) error {
	for i, name := range []string{"trace", "iteration", "report_producer"} {
		var err error
		if values[i] == nil {
			err = db.Exec(ctx, "RESET VARIABLE "+name)
		} else {
			err = db.Set(ctx, name, values[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pathTables are what the analysis reads of the chosen traces.
var pathTables = []string{"traces", "ranges", "gpu_events", "launches", "cpu_events"}

// narrow puts the rows of the chosen traces before those of the dataset, under
// the same names, until drop is called: to look for a trace in thousands of files
// takes longer than to walk its path.
func narrow(ctx context.Context, db *query.DB) (drop func() error, err error) {
	var drops string
	for _, t := range pathTables {
		drops += "DROP TABLE IF EXISTS temp." + t + ";"
	}
	drop = func() error { return db.Exec(ctx, drops) }
	for _, t := range pathTables {
		rows := "SELECT * FROM main." + t + " WHERE trace_id IN (SELECT trace_id FROM report_paths WHERE walked)"
		if err := db.Exec(ctx, create("temp."+t, rows)); err != nil {
			return nil, errors.Join(err, drop())
		}
	}
	return drop, nil
}
