package convert

import (
	"context"

	"tracelake/schema/lake"
)

// List tells which inputs the dataset holds already, converts none, and does
// what concerns the dataset as a whole and not one input: it removes what dead
// writers left, merges files where Options.TargetFileSize asks for it, takes out
// what earlier attempts of jobs left and what files held before they were replaced,
// and writes views.sql. Who distributes
// inputs over many processes with Options.Member calls it before and after.
func (i *Importer) List(ctx context.Context, found Found, report func(Report)) (Summary, error) {
	c := i.c
	sum := Summary{Ignored: found.Ignored, EmptyJobs: found.EmptyJobs}
	jobs := jobsDone{}
	files, err := c.held(found.Inputs)
	if err != nil {
		return sum, err
	}
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
		jobs.add(in, &rep)
		files.add(in, &rep)
		report(rep)
	}
	return sum, c.finish(ctx, found.Inputs, jobs, files, &sum)
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
