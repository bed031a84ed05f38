package convert

import (
	"context"

	"tracelake/analyze/activity"
	"tracelake/analyze/link"
	"tracelake/kineto"
	"tracelake/kineto/compat"
	"tracelake/schema"
)

// ImportActivities reads one Kineto trace and returns its activity records,
// capabilities and summary. With o.Compat it is the reference's
// import_kineto_trace: its reader, its times, its refusals. Otherwise broken
// text is mended where it can be, what was noticed is in the diagnostics, and
// marks tell which ranges are iterations.
func ImportActivities(ctx context.Context, path string, marks link.Marks, o activity.Options) (*activity.Result, *schema.Diagnostics, error) {
	var t *schema.Trace
	var res *kineto.Result
	var err error
	diags := &schema.Diagnostics{}
	if o.Compat {
		t, err = compat.Load(path)
	} else if t, res, err = Load(ctx, path, marks); err == nil {
		diags = res.Diags
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := activity.Capture(t, path, o)
	return r, diags, err
}
