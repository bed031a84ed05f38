package convert

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tracelake/schema"
	"tracelake/schema/lake"
)

// outcomes keep what became of inputs, which tells what of the dataset is outdated.
type outcomes struct {
	jobs   jobsDone
	before map[string][]string        // traces that the dataset had when the import began, by path
	now    map[string]map[string]bool // those that the files hold now
	copies map[string]copyOf          // inputs that may be twins, by trace
}

// copyOf is an input that the dataset holds already, under its own path or another.
type copyOf struct {
	in  Input
	rep Report
}

// outcomes asks what the dataset has of some inputs.
func (c *importer) outcomes(inputs []Input) (x outcomes, err error) {
	x = outcomes{jobs: jobsDone{}, now: map[string]map[string]bool{}, copies: map[string]copyOf{}}
	if c.o.Member {
		return x, nil
	}
	paths := map[string]bool{}
	for _, in := range inputs {
		paths[in.sourcePath()] = true
	}
	delete(paths, "")
	x.before, err = c.lake.Holding(paths)
	return x, err
}

// sourcePath names an input as its commit does; "" where two inputs may have one
// name.
func (in *Input) sourcePath() string {
	if in.Path == Stdin {
		return ""
	}
	if in.remote != nil {
		return in.remote.source(in.Path).Path
	}
	abs, err := filepath.Abs(in.Path)
	path := schema.ValidText(abs)
	if err != nil || strings.Contains(path, `\x`) { // which stands for a byte, or for itself
		return ""
	}
	return path
}

func (x *outcomes) add(in Input, r *Report) {
	x.jobs.add(in, r)
	if r.Skipped != "" && in.Path != Stdin { // which is read once
		x.copies[r.TraceID] = copyOf{in, *r}
	}
	path := in.sourcePath()
	if path == "" || r.Failed != "" || r.TraceID == "" {
		return
	}
	if x.now[path] == nil {
		x.now[path] = map[string]bool{}
	}
	x.now[path][r.TraceID] = true
}

// outdate takes out of the dataset what earlier attempts of jobs left and what
// files held before, with the twins of that. Returned are the twins among the
// inputs, which are to be imported again. Where the caller leaves that to others,
// what files held before stays for its twins.
func (c *importer) outdate(x outcomes, inputs []Input, imports bool, sum *Summary) (again []copyOf, err error) {
	o := lake.Outdated{
		Jobs: map[lake.Job]map[string]bool{}, Before: x.before, Now: x.now,
		Again: func(twin *lake.Commit) bool {
			_, ok := x.copies[twin.TraceID]
			return imports && ok
		},
		Old: func(of, twin *lake.Commit) bool {
			return twin.ContentDigest == twinSum(of.ContentDigest, twin.Source.Path)
		},
	}
	for job, d := range x.jobs {
		if !d.failed {
			o.Jobs[job] = d.keep
		}
	}
	gone, err := c.lake.Outdate(o)
	sum.Superseded, sum.Replaced = len(gone.Superseded), len(gone.Replaced)
	for i := range gone.Needed {
		n := &gone.Needed[i]
		sum.Notices = append(sum.Notices, fmt.Sprintf("trace %s stays: %s holds another trace now, but other inputs had the same content as this one", n.TraceID, n.Source.Path))
	}
	lost := map[string]bool{}
	for i := range gone.Twins {
		twin := &gone.Twins[i]
		if in, ok := x.copies[twin.TraceID]; ok {
			again = append(again, in)
		} else {
			lost[twin.Source.Path] = true
		}
	}
	for _, in := range inputs {
		delete(lost, in.sourcePath()) // it holds something else by now, which was imported
	}
	if len(lost) > 0 {
		sum.Notices = append(sum.Notices, fmt.Sprintf("%d files had the content of traces that their jobs replaced, and are no longer in the dataset; convert them again: %s", len(lost), some(lost)))
	}
	return again, err
}

// some names a few of many.
func some(paths map[string]bool) string {
	const few = 5
	list := slices.Sorted(maps.Keys(paths))
	if more := len(list) - few; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), more)
	}
	return strings.Join(list, ", ")
}
