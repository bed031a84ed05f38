package convert

import (
	"context"
	"path/filepath"

	"tracelake/analyze/activity"
	"tracelake/analyze/link"
	"tracelake/kineto/compat"
	"tracelake/nsight"
	nsightcompat "tracelake/nsight/compat"
	"tracelake/schema"
)

// ImportActivities reads one trace and returns its activity records,
// capabilities and summary. With o.Compat it is the reference's: its reader, its times, its refusals. Otherwise broken
// text is mended where it can be, what was noticed is in the diagnostics, and
// marks tell which ranges are iterations.
func ImportActivities(ctx context.Context, path string, marks link.Marks, o activity.Options) (*activity.Result, *schema.Diagnostics, error) {
	var t *schema.Trace
	var err error
	diags := &schema.Diagnostics{}
	switch {
	case o.Compat && isReferenceSQLite(path):
		t, err = nsightcompat.Load(path)
	case o.Compat:
		t, err = compat.Load(path)
	default:
		t, diags, err = Load(ctx, path, marks)
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := activity.Capture(t, path, o)
	return r, diags, err
}

// isReferenceSQLite reports whether the reference reads a file as an export of
// Nsight Systems, which it tells by the suffix alone; a database of another
// name is no trace of any other kind.
func isReferenceSQLite(path string) bool {
	return filepath.Ext(path) == ".sqlite" || nsight.Sniff(path) == nsight.SQLite
}
