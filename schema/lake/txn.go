package lake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"tracelake/internal/filelock"
	"tracelake/internal/scratch"
	"tracelake/schema"
)

// Txn writes the tables of one trace. A trace ID and a rank are often known
// only when all of the input was read, so that nothing has its final name
// before Commit.
type Txn struct {
	l     *Lake
	dir   string
	close func() error // removes the directory

	mu    sync.Mutex
	files map[string]*os.File // by table
	own   map[string]bool     // parts under names that no other process can use
	done  bool
}

// Begin starts a transaction. It must end with Commit or Abort.
func (l *Lake) Begin() (*Txn, error) {
	if l.writer == "" {
		return nil, errors.New("lake: opened for reading")
	}
	if l.Remote() {
		return l.beginHere()
	}
	dir := l.meta(tempPrefix + hostName() + "-" + randomName())
	// The lock comes first: a directory without one belongs to the dead.
	lock, err := filelock.Acquire(dir+lockSuffix, filelock.Wait)
	if err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		filelock.Release(lock)
		return nil, fmt.Errorf("lake: %w", err)
	}
	t := &Txn{l: l, dir: dir, files: map[string]*os.File{}}
	t.close = func() error {
		err := os.RemoveAll(dir)
		filelock.Release(lock)
		return err
	}
	return t, nil
}

// beginHere keeps files on this machine until they have their names, which
// depend on what they hold.
func (l *Lake) beginHere() (*Txn, error) {
	tmp, err := scratch.New()
	if err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	return &Txn{l: l, dir: tmp.Path(), close: tmp.Remove, files: map[string]*os.File{}}, nil
}

// Create makes the file of one table. The transaction owns the file: it may
// be closed by the caller, and is closed by Commit and Abort otherwise.
func (t *Txn) Create(table string) (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.done:
		return nil, ErrFinished
	case schema.TableByName(table) == nil && !schema.IsUserTable(table):
		return nil, fmt.Errorf("lake: no table %q", table)
	case t.files[table] != nil:
		return nil, fmt.Errorf("lake: table %s was created before", table)
	}
	f, err := os.OpenFile(filepath.Join(t.dir, table), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	t.files[table] = f
	return f, nil
}

// Spare makes a file for what does not fit into memory. It has no name, so that
// nothing is left of it once it is closed, which the caller does.
func (t *Txn) Spare() (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return nil, ErrFinished
	}
	f, err := os.CreateTemp(t.dir, "spare-")
	if err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("lake: %w", err)
	}
	return f, nil
}

// Drop takes a table out of the transaction, for example because it has no
// rows.
func (t *Txn) Drop(table string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.files[table]
	if t.done || f == nil {
		return nil
	}
	delete(t.files, table)
	f.Close()
	return os.Remove(f.Name())
}

// Abort removes everything that the transaction wrote. After Commit it does
// nothing, so that it can be deferred.
func (t *Txn) Abort() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return nil
	}
	return t.finish()
}

func (t *Txn) finish() error {
	t.done = true
	for _, f := range t.files {
		f.Close() // closed before, where all went well
	}
	return t.close()
}

// Always has Commit replace whatever is there.
func Always(*Commit) bool { return true }

// Commit makes the trace part of the lake. Where the same content is there
// already, the error is a *DuplicateError and nothing changes, unless replace
// says of the commit that is there that the new files take the place of its
// files; nil never does. It is asked when no other process can be publishing the
// trace, or again where one was, and must not call methods of the lake. Whatever
// the error, the transaction is over.
func (t *Txn) Commit(rec Record, replace func(old *Commit) bool) (c Commit, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return c, ErrFinished
	}
	defer func() { err = errors.Join(err, t.finish()) }()
	if err := rec.check(); err != nil {
		return c, err
	}
	c = Commit{Version: commitVersion, Record: rec, SchemaVersion: schema.Version, Writer: t.l.writer, Files: []File{}}
	name := PartName(rec.content(), rec.Options, rec.Run, rec.PathRank())
	if rec.Ext != "" {
		name = strings.TrimSuffix(name, partExt) + rec.Ext
	}
	for _, table := range t.tables() {
		c.Files = append(c.Files, File{
			Table: table, Path: PartPath(table, rec.Run, rec.PathRank(), name), Rows: rec.Rows[table],
		})
	}
	err = beside(flushedAtOnce, c.Files, func(f *File) (err error) {
		f.Bytes, err = syncFile(t.files[f.Table])
		return err
	})
	if err != nil {
		return c, fmt.Errorf("lake: %w", err)
	}
	unlessThere := func() error { return t.l.duplicate(&c, replace) }
	release, err := t.l.holdTrace(rec.TraceID, unlessThere)
	if err != nil {
		return c, err
	}
	defer release()
	return c, t.publish(&c, replace)
}

// holdTrace makes this process the only one that publishes or removes a trace,
// with the trace sharing no files with others; see Lake.apart for first. An object
// store has no locks: there the creation of the commit decides.
func (l *Lake) holdTrace(traceID string, first func() error) (release func(), err error) {
	if l.Remote() {
		if first != nil {
			err = first()
		}
		return func() {}, err
	}
	lock, err := filelock.Acquire(l.meta(tempPrefix+"publish-"+traceID+lockSuffix), filelock.Wait)
	if err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	layout, err := l.apart(first, traceID)
	if err != nil {
		filelock.Release(lock)
		return nil, err
	}
	return func() {
		layout.Close()
		filelock.Release(lock)
	}, nil
}

// tables returns the tables of the transaction: those of the data dictionary
// in its order, then those of users by name.
func (t *Txn) tables() []string {
	var out []string
	for _, table := range schema.Tables {
		if t.files[table.Name] != nil {
			out = append(out, table.Name)
		}
	}
	known := len(out)
	for name := range t.files {
		if schema.IsUserTable(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out[known:])
	return out
}

// duplicate returns a *DuplicateError where the content of a trace is in the
// lake and is not to be replaced.
func (l *Lake) duplicate(c *Commit, replace func(*Commit) bool) error {
	old, err := l.readCommit(c.TraceID)
	if err != nil { // of no trace, or publish says what is wrong
		return nil
	}
	return l.unlessReplaced(old, replace)
}

func (l *Lake) unlessReplaced(old Commit, replace func(*Commit) bool) error {
	if replace != nil && replace(&old) || !l.intact(&old) {
		return nil
	}
	l.remember(old)
	return &DuplicateError{Existing: old}
}

// maxSwaps is how often publishing starts again because the commit that it was
// to replace was replaced by others.
const maxSwaps = 20

// publish gives the files their places and swaps the commit. The trace is not
// there, or is to be replaced.
func (t *Txn) publish(c *Commit, replace func(*Commit) bool) (err error) {
	placed := map[string]bool{}
	for try := range maxSwaps {
		if err = t.publishOnce(c, replace, placed, try > 0); !errors.Is(err, errSwapped) {
			break
		}
	}
	return err
}

func (t *Txn) publishOnce(c *Commit, replace func(*Commit) bool, placed map[string]bool, again bool) error {
	old, version, err := t.l.readCommitVersion(c.TraceID)
	there := err == nil
	switch {
	case again && there && sameCommit(&old, c): // the answer was lost
		t.l.remember(old)
		return nil
	case there && t.l.Remote(): // which has no locks: it may be another one than before
		if err := t.l.unlessReplaced(old, replace); err != nil {
			return err
		}
	case there, errors.Is(err, fs.ErrNotExist):
	case errors.As(err, new(*DamagedError)): // it says nothing that could be kept
		there = true
	default:
		return err
	}
	if o := t.l.remote(); o != nil && t.own == nil && (there && !c.sameNames(&old) || !there && o.maybeRemoved(c)) {
		t.own = c.rename()
	}
	goes := map[string]bool{} // files that the trace has no longer
	for _, f := range old.Files {
		goes[f.Path] = true
	}
	if err := t.place(c, goes, placed); err != nil {
		return err
	}
	data, err := encode(c)
	if err != nil {
		return err
	}
	if there {
		err = t.l.at.swap(commitPath(c.TraceID), data, version)
	} else {
		err = t.l.at.write(commitPath(c.TraceID), data, createFile)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return t.lost(c, placed)
	case errors.Is(err, errSwapped):
		return err
	case err != nil:
		err = fmt.Errorf("lake: %w", err)
		if there, readErr := t.written(c, goes, placed); !there {
			return errors.Join(err, readErr)
		}
	}
	t.l.remember(*c)
	return errors.Join(err, t.tidyUp(c, &old, goes, placed))
}

// written reports whether a commit is there although writing it failed: a flush
// can fail when it has its name. Only where it is not its files go again.
func (t *Txn) written(c *Commit, keep, placed map[string]bool) (bool, error) {
	now, err := t.l.readCommit(c.TraceID)
	switch {
	case err == nil && sameCommit(&now, c):
		return true, nil
	case err == nil, errors.Is(err, fs.ErrNotExist):
		t.undo(placed, keep)
		return false, nil
	}
	return false, err // nobody knows: Sweep tells
}

// sameNames reports whether a commit has no parts under names that its predecessor
// did not have alone: a part that a commit names nobody removes before the commit
// is replaced.
func (c *Commit) sameNames(old *Commit) bool {
	had := map[string]bool{}
	for _, f := range old.Files {
		had[f.Path] = !f.Shared
	}
	return !slices.ContainsFunc(c.Files, func(f File) bool { return !had[f.Path] })
}

// rename gives the parts of a commit names that were never used, and returns them.
func (c *Commit) rename() map[string]bool {
	names := map[string]bool{}
	random := randomName()
	for i := range c.Files {
		f := &c.Files[i]
		f.Path = path.Join(path.Dir(f.Path), strings.TrimSuffix(mergedName([]string{f.Path, random}), partExt)+path.Ext(f.Path))
		names[f.Path] = true
	}
	return names
}

// place gives the files of a transaction their names, save for those that were
// placed before.
func (t *Txn) place(c *Commit, keep, placed map[string]bool) error {
	left := slices.DeleteFunc(slices.Clone(c.Files), func(f File) bool { return placed[f.Path] })
	var mu sync.Mutex
	put := func(f *File) error {
		if err := t.l.at.put(t.files[f.Table].Name(), f.Path); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		placed[f.Path] = true
		return nil
	}
	n := flushedAtOnce
	if t.l.Remote() {
		n = 1
	}
	if err := beside(n, left, put); err != nil {
		t.undo(placed, keep)
		return fmt.Errorf("lake: %w", err)
	}
	return nil
}

// flushedAtOnce is how many files are made durable beside each other: a file
// system writes its journal once for all that wait for it, and not once for each.
const flushedAtOnce = 16

// beside calls f for files, n at a time, until one fails, and waits for all calls.
func beside(n int, files []File, f func(*File) error) error {
	g, ctx := errgroup.WithContext(context.Background())
	g.SetLimit(n)
	for i := range files {
		g.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			return f(&files[i])
		})
	}
	return g.Wait()
}

// undo removes files that were placed. In an object store another writer may
// have put the same files there, save under names of their own: Sweep tells.
func (t *Txn) undo(placed, keep map[string]bool) {
	for p := range placed {
		if !keep[p] && (!t.l.Remote() || t.own[p]) {
			_ = t.l.at.remove(p) // Sweep tries again
		}
	}
}

// lost ends the publication of a trace that another process created in the
// meantime, which can happen without locks. Its commit counts; files of the same
// name are its files as well.
func (t *Txn) lost(c *Commit, placed map[string]bool) error {
	winner, err := t.l.readCommit(c.TraceID)
	if err != nil {
		return err
	}
	t.l.remember(winner)
	if sameCommit(&winner, c) { // a twin, or this process with an answer that was lost
		return nil
	}
	keep := map[string]bool{}
	for _, f := range winner.Files {
		keep[f.Path] = true
	}
	t.undo(placed, keep)
	return &DuplicateError{Existing: winner}
}

// tidyUp removes what the predecessor of a commit had and the commit has not.
func (t *Txn) tidyUp(c, old *Commit, goes, placed map[string]bool) error {
	for p := range placed {
		goes[p] = true
	}
	for _, f := range c.Files {
		delete(goes, f.Path)
	}
	for _, f := range old.Files {
		if f.Shared { // and damaged, or to be cleaned: others may need it
			delete(goes, f.Path)
		}
	}
	var errs []error
	for p := range goes {
		if err := t.l.at.remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("lake: %w", err))
		}
	}
	return errors.Join(errs...)
}

// retire takes a trace out of the lake. The caller holds it.
func (l *Lake) retire(traceID string) error {
	c, err := l.readCommit(traceID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.at.remove(commitPath(traceID)); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	l.mu.Lock()
	l.idx.drop(traceID)
	l.mu.Unlock()
	for _, f := range c.Files {
		if !f.Shared {
			_ = l.at.remove(f.Path) // Sweep tries again
		}
	}
	if l.Remote() {
		return nil
	}
	return syncDir(l.meta(commitsDir))
}

// sameCommit reports whether two commits are written alike.
func sameCommit(a, b *Commit) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}
