package convert

import (
	"context"
	"fmt"

	"tracelake/schema/lake"
)

// List tells which inputs the dataset holds already, converts none, and does
// what concerns the dataset as a whole and not one input: it removes what dead
// writers left, merges files where Options.TargetFileSize asks for it, takes out
// what earlier attempts of jobs left and what files held before they were replaced,
// and writes views.sql. Who distributes inputs over many processes with
// Options.Member calls it before and after. Copies of what earlier attempts left are
// to be converted again; what files held before stays where it has copies.
func (i *Importer) List(ctx context.Context, found Found, report func(Report)) (Summary, error) {
	c := i.c
	sum := Summary{Ignored: found.Ignored, EmptyJobs: found.EmptyJobs}
	became, err := c.outcomes(found.Inputs)
	if err != nil {
		return sum, err
	}
	reports := make([]Report, 0, len(found.Inputs))
	for _, in := range found.Inputs {
		rep := Report{Path: in.Path, Unit: in.unit(), Bytes: in.Bytes, Failed: in.Problem}
		if src, err := in.source(); in.Problem == "" && err != nil {
			rep.Failed = err.Error()
		} else if rep.Failed == "" {
			rep.Run = lake.RunSlug(c.o.runFor(in))
			c.done(in, src, &rep)
		}
		sum.Inputs++
		switch {
		case rep.Failed != "":
			sum.Failed++
		case rep.Skipped != "":
			sum.Skipped++
		}
		became.add(in, &rep)
		reports = append(reports, rep)
	}
	left := map[string]bool{}
	err = c.finish(ctx, found.Inputs, became, &sum, false, func(again []copyOf) error {
		for _, x := range again {
			left[x.rep.TraceID] = true
			sum.Skipped--
		}
		if len(again) > 0 {
			sum.Notices = append(sum.Notices, fmt.Sprintf("%d inputs had the content of traces that their jobs replaced, and are to be converted again", len(again)))
		}
		return nil
	})
	for _, r := range reports {
		if left[r.TraceID] {
			r = Report{Path: r.Path, Unit: r.Unit, Bytes: r.Bytes, Run: r.Run}
		}
		report(r)
	}
	return sum, err
}

// unit is what to convert for an input: the input itself, or the output of the
// job that it belongs to, without which its keys are unknown.
func (in *Input) unit() string {
	if in.Job == nil || in.Tables && in.Path != in.Job.Dir {
		return in.Path
	}
	return in.Job.Dir
}

func (in *Input) source() (lake.Source, error) {
	switch {
	case in.Tables:
		return sourceOfTables(*in)
	case in.remote != nil:
		return in.remote.source(in.Path), nil
	}
	return sourceOf(in.Path)
}
