package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tracelake/collected"
	"tracelake/internal/digest"
	"tracelake/internal/regular"
	"tracelake/schema"
	"tracelake/schema/columnar"
	"tracelake/schema/lake"
)

// tables imports the tables that a job of collect left, as one trace: rows of
// different tables of a job share the trace_id.
func (c *importer) tables(ctx context.Context, in Input) (rep Report, err error) {
	started := time.Now()
	rep = Report{Path: in.Path, Bytes: in.Bytes, Kind: KindTables, source: "tables", Run: lake.RunSlug(c.o.runFor(in))}
	defer func() { rep.Seconds = time.Since(started).Seconds() }()
	src, err := sourceOfTables(in)
	if err != nil {
		rep.Failed = err.Error()
		return rep, nil
	}
	if c.done(in, src, &rep) {
		return rep, nil
	}
	content, sums, err := sumOfTables(in.Job)
	if err != nil {
		rep.Failed = err.Error()
		return rep, nil
	}
	if rep.TraceID, err = lake.TraceID(content); err != nil {
		return rep, err
	}
	rep.digest = content
	// What a job that ran again left under the same path takes the place of
	// what it left before, also where nothing but the time of the files changed.
	old, there := c.lake.DoneContent(content)
	replace := func(old *lake.Commit) bool {
		if old.Source.Path == src.Path {
			return c.o.Force || there || old.Source != src
		}
		_, err := os.Stat(old.Source.Path)
		return err != nil && !c.o.Force
	}
	if there && old.Source.Path != src.Path && !replace(&old) {
		return rep, c.twin(in, src, old, &rep)
	}
	err = c.writeTables(ctx, in, src, sums, replace, &rep)
	var dup *lake.DuplicateError
	var changed *changedError
	switch {
	case errors.As(err, &dup) && dup.Existing.Source == src: // another process was first
		rep.skip(&dup.Existing)
		return rep, nil
	case errors.As(err, &dup):
		return rep, c.twin(in, src, dup.Existing, &rep)
	case errors.As(err, &changed):
		rep.Failed = err.Error()
		return rep, nil
	}
	return rep, err
}

func (c *importer) writeTables(ctx context.Context, in Input, src lake.Source, sums []string, replace func(*lake.Commit) bool, rep *Report) error {
	txn, err := c.lake.Begin()
	if err != nil {
		return err
	}
	defer txn.Abort() //nolint:errcheck // what could not be removed is swept later
	arrowID := ""
	if c.o.Format == columnar.Arrow {
		arrowID = rep.TraceID
	}
	s, err := c.newSink(txn, func(t string) bool { return slices.Contains(always, t) }, arrowID)
	if err != nil {
		return err
	}
	defer s.abandon()
	d := &schema.Diagnostics{}
	for i, file := range in.Job.Tables {
		if err := c.table(ctx, in, file, sums[i], s, d); err != nil {
			return err
		}
		if c.o.Progress != nil {
			c.o.Progress(in.Path, in.Bytes*int64(i+1)/int64(len(in.Job.Tables)))
		}
	}
	rep.Outcome, rep.Reason = d.Outcome()
	if c.o.Strict && rep.Outcome != lake.OutcomeOK {
		rep.Failed = "not ok in strict mode: " + rep.Reason
		return nil
	}
	rep.Diags = diagnostics(d)
	if err := c.writeTraces(s, nil, in, src, rep, rankInfo{}, ""); err != nil {
		return err
	}
	if err := writeDiagnostics(s, d); err != nil {
		return err
	}
	rows, err := s.close(rep.TraceID, map[string]string{
		"tracelake.run": rep.Run, "tracelake.trace_id": rep.TraceID, "tracelake.content_digest": rep.digest, "tracelake.writer": c.o.Writer,
	})
	if err != nil {
		return err
	}
	rep.Rows = rows
	_, err = txn.Commit(lake.Record{
		TraceID: rep.TraceID, ContentDigest: rep.digest, Source: src, Options: c.o.keyFor(in), Run: rep.Run, Job: in.lakeJob(),
		Outcome: rep.Outcome, Reason: rep.Reason, Diagnostics: countCodes(d), Rows: rows, Ext: c.ext(),
	}, replace)
	return err
}

// table imports one table file.
func (c *importer) table(ctx context.Context, in Input, file collected.TableFile, sum string, s *sink, d *schema.Diagnostics) error {
	h := digest.New()
	err := collected.Read(ctx, file.Path, collected.Options{
		Keys: in.Job.Keys, Name: file.Name, Rows: file.Rows, RowGroup: c.o.RowGroup, Diags: d, Digest: h,
		Start: func(t *schema.Table) (string, error) {
			if !c.o.wanted(t.Name) {
				return "", nil
			}
			if old := s.tables[t.Name]; old != nil {
				if !slices.Equal(old.t.Columns, t.Columns) {
					return "another file of the job declares the table with other columns", nil
				}
				return "", nil
			}
			return "", s.create(t)
		},
		RowGroups: func(t *schema.Table, rows int, cols []schema.Vector) error {
			return s.rowGroup(t, rows, cols, func() {})
		},
	})
	if err != nil {
		return fmt.Errorf("%s: %w", in.Path, err)
	}
	if got := digest.Text(h); got != sum {
		return &changedError{file.Path}
	}
	return nil
}

type changedError struct{ path string }

func (e *changedError) Error() string { return e.path + ": changed while it was read; convert again" }

// sourceOfTables describes the table files of a job as one source. A file that
// is missing is reported when it is read.
func sourceOfTables(in Input) (lake.Source, error) {
	abs, err := filepath.Abs(in.Path)
	if err != nil {
		return lake.Source{}, err
	}
	src := lake.Source{Path: schema.ValidText(abs)}
	for _, f := range in.Job.Tables {
		st, err := os.Stat(f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return src, err
		}
		src.Bytes += st.Size()
		src.MTimeNS = max(src.MTimeNS, st.ModTime().UnixNano())
	}
	return src, nil
}

// sumOfTables returns the digest of what a job left, and that of each file.
// The keys are part of it: equal tables of two models are not the same.
func sumOfTables(j *collected.Job) (content string, sums []string, err error) {
	all := digest.New()
	fmt.Fprintf(all, "tables\n%q\n%q\n", j.Keys, j.Key)
	for _, f := range j.Tables {
		h := digest.New()
		file, err := regular.Open(f.Path)
		if err == nil {
			_, err = io.Copy(h, file)
			file.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, err
		}
		sums = append(sums, digest.Text(h))
		fmt.Fprintf(all, "%q %d %s\n", f.Name, f.Rows, sums[len(sums)-1])
	}
	return digest.Text(all), sums, nil
}

// lakeJob names the job of an input in its commit.
func (in *Input) lakeJob() *lake.Job {
	if in.Job == nil || in.Job.Attempt == "" {
		return nil
	}
	abs, err := filepath.Abs(in.Job.Dir)
	if err != nil {
		return nil
	}
	return &lake.Job{Dir: abs, Attempt: in.Job.Attempt}
}

// runFor names the run of an input: the model and mode of its job, or the
// directory of the file.
func (o *Options) runFor(in Input) string {
	switch {
	case o.Run != "":
		return o.Run
	case in.Job == nil:
		return runOf(in.Path)
	case in.Job.Keys.Model == "":
		return runOf(filepath.Join(in.Job.Dir, collected.StatusFile))
	}
	return strings.Trim(in.Job.Keys.Model+"/"+in.Job.Keys.Mode, "/")
}

// keyFor is key with what else changes the rows of an input.
func (o *Options) keyFor(in Input) string {
	k := o.key()
	if in.Job != nil {
		k += fmt.Sprintf(" job=%q,%q", in.Job.Keys, in.Job.Key)
	}
	if !in.Tables {
		k += o.uuidKey(in.Path)
	}
	return k
}

// jobColumns fills in which job a trace comes from.
func jobColumns(b *builder, j *collected.Job) {
	if j == nil {
		return
	}
	b.optText("model", j.Keys.Model)
	b.optText("revision", j.Keys.Revision)
	b.optText("framework", j.Keys.Framework)
	b.optText("mode", j.Keys.Mode)
	b.optText("tracer", j.Keys.Tracer)
	b.optText("tracer_version", j.Keys.TracerVersion)
	b.optText("job_key", j.Key)
}
