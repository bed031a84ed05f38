package convert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	pathOfURL "path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tracelake/analyze/link"
	"tracelake/internal/aside"
	"tracelake/internal/store"
	"tracelake/kineto"
	"tracelake/schema"
	"tracelake/schema/columnar"
	"tracelake/schema/lake"
)

// importer converts inputs into one dataset.
type importer struct {
	o    Options
	lake *lake.Lake
	enc  *encoders
	gate chan struct{}

	active atomic.Int64 // inputs that are imported just now

	unwritten atomic.Int64 // inputs in a row that the object store of the dataset did not take
}

// maxUnwritten is how many inputs in a row a store may not take before an import
// ends: then it is down, and every further one would wait for nothing.
const maxUnwritten = 8

// notTaken reports whether an input failed because the store of the dataset was
// too busy or broke off, which says nothing about the next one.
func (c *importer) notTaken(err error) bool {
	var e *store.Error
	return errors.As(err, &e) && (e.Kind == store.Throttled || e.Kind == store.Broken) && c.unwritten.Add(1) < maxUnwritten
}

// share is how many goroutines may compute for one of the inputs at hand.
func (c *importer) share() int { return c.o.Workers / int(max(1, c.active.Load())) }

// one converts one input. What is wrong with the input stands in the report;
// an error means that the dataset could not be written.
func (c *importer) one(ctx context.Context, in Input) (rep Report, err error) {
	switch {
	case in.Problem != "":
		return Report{Path: in.Path, Bytes: in.Bytes, Failed: in.Problem}, nil
	case in.Tables:
		return c.tables(ctx, in)
	}
	started := time.Now()
	rep = Report{Path: in.Path, Bytes: in.Bytes}
	defer func() { rep.Seconds = time.Since(started).Seconds() }()
	path, src, cleanup, err := c.open(in)
	defer cleanup()
	if err != nil {
		rep.Failed = err.Error()
		return rep, nil
	}
	rep.Run = lake.RunSlug(c.o.runFor(in))
	if c.done(in, src, &rep) {
		return rep, nil
	}
	from, done, err := c.readerOf(ctx, in, path)
	defer done()
	if err == nil {
		rep.source = from.source()
		for range maxRestarts {
			if err = c.attempt(ctx, in, from, src, &rep); !errors.Is(err, errAgain{}) {
				break
			}
		}
	}
	var dup *lake.DuplicateError
	var rejected *schema.RejectedError
	switch {
	case err == nil:
		c.unwritten.Store(0)
	case errors.As(err, &dup) && dup.Existing.Source == src: // another process was first
		rep.skip(&dup.Existing)
		return rep, nil
	case errors.As(err, &dup):
		return rep, c.twin(in, src, dup.Existing, &rep)
	case errors.As(err, &rejected):
		return rep, c.reject(ctx, in, path, src, rejected, &rep)
	case ctx.Err() != nil:
		return rep, ctx.Err()
	default:
		var pe *os.PathError
		var unread *unreadError
		if errors.As(err, &unread) {
			return Report{Path: rep.Path, Bytes: rep.Bytes, Run: rep.Run, Failed: unread.Error(), source: rep.source}, nil
		}
		if c.notTaken(err) {
			rep.Failed = "not written: " + err.Error()
			return rep, nil
		}
		if errors.As(err, &pe) && (pe.Path == path || strings.HasPrefix(pe.Path, path+string(filepath.Separator))) { // the input cannot be read
			rep.Failed = err.Error()
			return rep, nil
		}
		return rep, fmt.Errorf("%s: %w", in.Path, err)
	}
	return rep, nil
}

// done fills in the report of an input that the dataset holds already.
func (c *importer) done(in Input, src lake.Source, rep *Report) bool {
	if c.o.Force || c.o.Member || in.Path == Stdin {
		return false
	}
	old, ok := c.lake.Done(src, c.o.keyFor(in))
	if !ok || c.misfiled(&old.Record) {
		return false
	}
	rep.skip(&old)
	return true
}

// misfiled reports whether a trace is in another run than the one that was asked
// for. Where none was, it stays in the run that it was imported into.
func (c *importer) misfiled(old *lake.Record) bool {
	return c.o.Run != "" && old.Run != lake.RunSlug(c.o.Run)
}

// open finds the file to read. Standard input is kept in a temporary file,
// because some traces have to be read twice.
func (c *importer) open(in Input) (path string, src lake.Source, cleanup func(), err error) {
	cleanup = func() {}
	if in.remote != nil {
		return "", in.remote.source(in.Path), cleanup, nil
	}
	if in.Path != Stdin {
		src, err = sourceOf(in.Path)
		return in.Path, src, cleanup, err
	}
	f, err := os.CreateTemp("", "tracelake-stdin-")
	if err != nil {
		return "", src, cleanup, err
	}
	cleanup = func() { _ = os.Remove(f.Name()) }
	n, err := io.Copy(f, os.Stdin)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return f.Name(), lake.Source{Path: Stdin, Bytes: n}, cleanup, err
}

// runOf names a run after the directory of its file.
func runOf(path string) string {
	if path == Stdin {
		return "stdin"
	}
	if store.IsURL(path) {
		return pathOfURL.Base(pathOfURL.Dir(path))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "run"
	}
	return filepath.Base(filepath.Dir(abs))
}

// attempt reads, links and writes one input.
func (c *importer) attempt(ctx context.Context, in Input, from reader, src lake.Source, rep *Report) error {
	txn, err := c.lake.Begin()
	if err != nil {
		return err
	}
	defer txn.Abort() //nolint:errcheck // what could not be removed is swept later
	arrowID := ""
	how := reading{o: &c.o, gate: c.gate, share: c.share, size: src.Bytes}
	if c.o.Format == columnar.Arrow {
		sum, err := from.digest(ctx, how)
		if err != nil {
			return err
		}
		if arrowID, err = lake.TraceID(sum); err != nil {
			return err
		}
	}
	s, err := c.newSink(txn, c.o.wanted, arrowID)
	if err != nil {
		return err
	}
	defer s.abandon()
	how.sink = s.rowGroup
	spare := aside.New(txn.Spare)
	defer spare.Close()
	how.aside, s.aside = spare, spare
	if c.o.Progress != nil {
		how.progress = func(n int64) { c.o.Progress(in.Path, n) }
	}
	res, err := from.read(ctx, how)
	if err != nil {
		return err
	}
	id, err := lake.TraceID(res.digest)
	if err != nil {
		return err
	}
	if arrowID != "" && arrowID != id {
		return &unreadError{&changedError{in.Path}}
	}
	if res.gpu.Len()+res.launches.Len() > manyRows {
		kineto.DropBuffers() // they take more than reading the next trace gains by them
		runtime.GC()
	}
	m := newModel(res, &c.o.Marks)
	links := link.Resolve(m.trace, link.Careful)
	c.judge(in, m, links)
	outcome, reason := res.diags.Outcome()
	if c.o.Strict && outcome != "ok" {
		return &schema.RejectedError{Reason: "not ok in strict mode: " + reason}
	}
	uuids := c.byProcess(m, links)
	m.freeLinking()
	if err := m.writeLinked(s, links, c.o.RowGroup); err != nil {
		return err
	}
	if res.gpu.Len()+res.launches.Len() > manyRows {
		runtime.GC()
	}
	rank := c.rankOf(in.Path, res)
	rep.fill(m, links, id, rank, outcome, reason)
	if err := c.writeActivities(s, m, links, in.Path, uuids); err != nil {
		return err
	}
	if err := c.writeTraces(s, m, in, src, rep, rank, ""); err != nil {
		return err
	}
	if err := writeDiagnostics(s, res.diags); err != nil {
		return err
	}
	rows, err := s.close(id, map[string]string{
		"tracelake.run": rep.Run, "tracelake.trace_id": id, "tracelake.content_digest": res.digest, "tracelake.writer": c.o.Writer,
	})
	if err != nil {
		return err
	}
	rep.Rows = rows
	if err := spare.Err(); err != nil {
		return err
	}
	if err := unchanged(in, src); err != nil {
		return err
	}
	spare.Close() // NFS keeps removed files in their directory until they are closed
	rec := lake.Record{
		TraceID: id, ContentDigest: res.digest, Source: src, Options: c.o.keyFor(in), Run: rep.Run, Job: in.lakeJob(),
		Rank: optPtr(rank.value), WorldSize: rep.WorldSize, Outcome: outcome, Reason: reason,
		Diagnostics: countCodes(res.diags), Rows: rows, Ext: c.ext(),
	}
	_, err = txn.Commit(rec, c.replaces(&rec))
	return err
}

// manyRows is from how many linked rows on a trace is large.
const manyRows = 500_000

// replaces returns whether a trace takes the place of one with the same content:
// never of that of another file, whatever --force says, and of its own where it
// was asked for or where the options, the run or the time of the file changed.
func (c *importer) replaces(rec *lake.Record) func(old *lake.Commit) bool {
	return func(old *lake.Commit) bool {
		return old.Source.Path == rec.Source.Path &&
			(c.o.Force || old.Options != rec.Options || old.Source != rec.Source || c.misfiled(&old.Record))
	}
}

// reject records an input that is no trace: a row in traces and what was
// wrong, and nothing else. Path is where a local one is read.
func (c *importer) reject(ctx context.Context, in Input, path string, src lake.Source, why *schema.RejectedError, rep *Report) error {
	if err := unchanged(in, src); err != nil {
		rep.Failed = err.Error()
		return nil
	}
	sum, err := "", error(nil)
	if in.remote != nil {
		sum, err = in.remote.storedSum(ctx)
	} else {
		sum, err = storedSum(path)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		rep.Failed = err.Error()
		return nil
	}
	d := &schema.Diagnostics{}
	off := schema.Null
	if why.Offset > 0 {
		off = why.Offset
	}
	d.Add(schema.NotATrace, off, schema.Null, 1, why.Reason)
	rep.Outcome, rep.Reason, rep.Diags = "rejected", why.Error(), diagnostics(d)
	rep.TraceID, rep.digest = lake.RejectedTraceID(sum, src.Path), sum
	return c.withoutRows(in, src, sum, "", d, rep)
}

// unchanged returns an error where a local input is another one than when
// reading began: what was read may be parts of both. One that was removed was
// read to its end before.
func unchanged(in Input, was lake.Source) error {
	if in.Path == Stdin || in.remote != nil {
		return nil
	}
	now, err := sourceOf(in.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return &unreadError{err}
	case now != was:
		return &unreadError{&changedError{in.Path}}
	}
	return nil
}

// twin records an input whose content the dataset holds already, so that every
// input has its row in traces.
func (c *importer) twin(in Input, src lake.Source, of lake.Commit, rep *Report) error {
	if of.Source == src && of.Options == c.o.keyFor(in) && !c.o.Force { // another process was first with this input
		rep.Outcome, rep.Reason, rep.TraceID, rep.Skipped = of.Outcome, of.Reason, of.TraceID, AlreadyThere
		return nil
	}
	rep.Skipped = "same content as " + of.Source.Path
	d := &schema.Diagnostics{}
	d.Add(schema.SameContent, schema.Null, schema.Null, 1, rep.Skipped)
	for i := range rep.Diags { // what is so of this file, whatever its content
		if x := &rep.Diags[i]; slices.Contains(storedForm, schema.Code(x.Code)) {
			d.Add(schema.Code(x.Code), schema.Null, schema.Null, x.Count, x.Message)
		}
	}
	sum := twinSum(of.ContentDigest, src.Path)
	rep.TraceID, rep.digest = sum[:schema.TraceIDLen], of.ContentDigest
	rep.GPUEvents, rep.Linked, rep.Ambiguous, rep.InIter, rep.Iterations = 0, 0, 0, 0, 0
	rep.Rows = nil
	return c.withoutRows(in, src, sum, of.TraceID, d, rep)
}

// storedForm are the codes that tell of the form in which a trace is stored.
var storedForm = []schema.Code{
	schema.ByteOrderMark, schema.UTF16, schema.NestedGzip, schema.TrailingBytes, schema.GzipCut, schema.GzipChecksum, schema.StreamCorrupt,
}

// twinSum stands for the content of an input whose rows are those of another.
func twinSum(content, path string) string {
	sum := sha256.Sum256([]byte(content + "\x00" + path))
	return hex.EncodeToString(sum[:])
}

// withoutRows commits an input that has rows in traces and diagnostics only.
func (c *importer) withoutRows(in Input, src lake.Source, sum, duplicateOf string, d *schema.Diagnostics, rep *Report) error {
	rank := rankInfo{inName: kineto.RankInName(in.Path)}
	txn, err := c.lake.Begin()
	if err != nil {
		return err
	}
	defer txn.Abort() //nolint:errcheck // what could not be removed is swept later
	arrowID := ""
	if c.o.Format == columnar.Arrow {
		arrowID = rep.TraceID
	}
	s, err := c.newSink(txn, func(t string) bool { return t == always[0] || t == always[1] }, arrowID)
	if err != nil {
		return err
	}
	if err := c.writeTraces(s, nil, in, src, rep, rank, duplicateOf); err != nil {
		return err
	}
	if err := writeDiagnostics(s, d); err != nil {
		return err
	}
	rows, err := s.close(rep.TraceID, map[string]string{"tracelake.run": rep.Run, "tracelake.trace_id": rep.TraceID})
	if err != nil {
		return err
	}
	_, err = txn.Commit(lake.Record{
		TraceID: rep.TraceID, ContentDigest: sum, Source: src, Options: c.o.keyFor(in), Run: rep.Run, Job: in.lakeJob(), Outcome: rep.Outcome,
		Reason: rep.Reason, DuplicateOf: duplicateOf, Diagnostics: countCodes(d), Rows: rows, Ext: c.ext(),
	}, lake.Always)
	return err
}

// ext returns the extension of files.
func (c *importer) ext() string {
	if c.o.Format == columnar.Arrow {
		return ".arrow"
	}
	return ""
}

func countCodes(d *schema.Diagnostics) map[string]int64 {
	out := map[string]int64{}
	for _, i := range schema.Codes {
		if n := d.Count(i.Code); n > 0 {
			out[string(i.Code)] = n
		}
	}
	return out
}
