package convert

import (
	"os"
	"path/filepath"
	"strings"

	"tracelake/collected"
	"tracelake/schema/lake"
)

// addJob adds what the output of a job holds: its profiler traces, and its
// tables as one input.
func (f *Found) addJob(dir string, named bool, add func(Input)) {
	job, err := collected.ReadJob(dir)
	if err != nil {
		add(Input{Path: filepath.Join(dir, collected.StatusFile), Named: named, Problem: err.Error()})
		return
	}
	if len(job.Traces)+len(job.Tables) == 0 {
		f.EmptyJobs++
		return
	}
	for _, p := range job.Traces {
		in := Input{Path: p, Named: named, Job: job}
		if st, err := os.Stat(p); err == nil {
			in.Bytes = st.Size()
		}
		add(in)
	}
	if len(job.Tables) > 0 {
		in := Input{Path: dir, Named: named, Job: job, Tables: true}
		if src, err := sourceOfTables(in); err == nil {
			in.Bytes = src.Bytes
		}
		add(in)
	}
}

// addTable adds a table file on its own: with the keys of its job where it
// lies in the output of one.
func addTable(path string, size int64, named bool, add func(Input)) {
	job := &collected.Job{Dir: filepath.Dir(path)}
	if dir := filepath.Dir(filepath.Dir(path)); collected.IsJob(dir) {
		if whole, err := collected.ReadJob(dir); err == nil {
			job.Keys, job.Key = whole.Keys, whole.Key
		}
	}
	job.Tables = []collected.TableFile{{Path: path, Name: filepath.Base(path), Rows: -1}}
	add(Input{Path: path, Bytes: size, Named: named, Job: job, Tables: true})
}

// isTable reports whether a file is a table of a tracer.
func isTable(path string) bool {
	return strings.HasSuffix(path, ".jsonl") && collected.IsTable(path)
}

// jobsDone keeps what became of the inputs of each job.
type jobsDone map[lake.Job]*jobDone

type jobDone struct {
	keep   map[string]bool // traces of the latest attempt
	failed bool            // some input of it is not in the dataset
}

func (d jobsDone) add(in Input, r *Report) {
	job := in.lakeJob()
	if job == nil {
		return
	}
	if d[*job] == nil {
		d[*job] = &jobDone{keep: map[string]bool{}}
	}
	d[*job].failed = d[*job].failed || r.Failed != "" || r.TraceID == ""
	d[*job].keep[r.TraceID] = true
}
