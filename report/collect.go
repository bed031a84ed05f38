package report

import (
	"context"
	"fmt"
	"math"

	"tracelake/analyze/query"
	"tracelake/schema"
)

// Options say what the report is about.
type Options struct {
	Title   string
	Lake    string // dataset, as the user named it
	Command string // command line that writes the report
	Version string // program and version
	Date    string // shown as it is; "" for none
	Top     int    // rows of the tables of kernels and operators; 0 for 100
}

// Report is all that is in a report.
type Report struct {
	Options
	SchemaVersion int
	Tables        map[string]*Table
	Timeline      *Timeline
}

// CheckTop says whether a number of rows is allowed.
func CheckTop(n int64) error {
	if n < 1 || n > maxTop {
		return fmt.Errorf("want 1 to %d rows", maxTop)
	}
	return nil
}

// Collect asks a dataset all that a report shows. Variables of the database
// select what it is about.
func Collect(ctx context.Context, db *query.DB, o Options) (*Report, error) {
	if o.Top == 0 {
		o.Top = defaultTop
	}
	r := &Report{Options: o, SchemaVersion: schema.Version, Tables: map[string]*Table{}}
	variables := map[string]int64{
		"top":            math.MaxInt32, // all rows are counted, and shares are of all
		"report_devices": maxDevices, "report_lanes": maxLanes, "report_boxes": maxBoxes, "report_per_cell": boxesOfCell,
		"report_series": maxSeries, "report_points": maxPoints, "report_paths": maxPaths, "report_path_events": maxPathEvents,
	}
	for name, value := range variables {
		if err := db.Set(ctx, name, value); err != nil {
			return nil, err
		}
	}
	for _, s := range sources {
		t, err := s.read(ctx, db, o.Top)
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		if t != nil {
			r.Tables[s.name] = t
		}
	}
	advise(r.Tables["diagnostics"])
	var err error
	if r.Timeline, err = readTimeline(ctx, db); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return r, nil
}

// Traces returns the number of traces that the report is about.
func (r *Report) Traces() int64 { return number(r.Tables["totals"].first("traces")) }

// Verdict returns the worst verdict of the traces.
func (r *Report) Verdict() string {
	t := r.Tables["totals"]
	for _, v := range []string{"poor", "fair"} {
		if number(t.first(v)) > 0 {
			return v
		}
	}
	return "good"
}
