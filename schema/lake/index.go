package lake

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// index is what is known of the commits. It is read once and then refreshed
// by file, because a lake may hold many thousands.
type index struct {
	loaded   bool
	commits  map[string]Commit    // by trace ID
	stamp    map[string]fileStamp // of the commit file, by trace ID
	bySource map[Source]string    // to trace ID
	unsaved  int                  // commits that the snapshot lacks
}

type fileStamp struct {
	size    int64
	mtime   time.Time
	version string // of an object
}

func newIndex() index {
	return index{
		commits: map[string]Commit{}, stamp: map[string]fileStamp{}, bySource: map[Source]string{},
	}
}

func (x *index) add(c Commit) {
	x.drop(c.TraceID)
	x.commits[c.TraceID] = c
	x.bySource[c.Source] = c.TraceID
}

func (x *index) drop(id string) {
	old, ok := x.commits[id]
	if !ok {
		return
	}
	delete(x.commits, id)
	delete(x.stamp, id)
	if x.bySource[old.Source] == id {
		delete(x.bySource, old.Source)
	}
}

// remember notes a commit that this process has just written or seen.
func (l *Lake) remember(c Commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idx.add(c)
}

// Refresh reads the commits that other processes wrote, replaced or removed
// since the last time. A commit that cannot be read is left out and reported
// in the error; the others count.
func (l *Lake) Refresh() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh()
}

func (l *Lake) refresh() error {
	entries, err := l.at.files(MetaDir + "/" + commitsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lake: %w", err)
	}
	var errs []error
	seen := map[string]bool{}
	var changed []entry // with IDs for names
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.name, commitSuffix)
		if !ok || !traceIDPattern.MatchString(id) {
			continue
		}
		seen[id] = true
		if l.idx.stamp[id] != e.stamp {
			changed = append(changed, entry{id, e.stamp})
		}
	}
	if !l.idx.loaded {
		changed = l.recall(changed)
	} else {
		l.idx.unsaved += len(changed)
	}
	l.readCommits(changed, func(e entry, c Commit, err error) {
		if err == nil {
			l.idx.add(c)
			l.idx.stamp[c.TraceID] = e.stamp
			return
		}
		l.idx.drop(e.name)
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	})
	for id := range l.idx.commits {
		if !seen[id] {
			l.idx.drop(id)
		}
	}
	l.idx.loaded = true
	if err := l.overlay(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// readAtOnce is how many commits of an object store are read at once: each takes
// as long as a request does.
const readAtOnce = 32

// readCommits reads commits and calls got for each, one at a time.
func (l *Lake) readCommits(list []entry, got func(entry, Commit, error)) {
	workers := min(runtime.GOMAXPROCS(0), len(list)) // to parse them
	if l.Remote() {
		workers = min(readAtOnce, len(list))
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan entry)
	for range workers {
		wg.Go(func() {
			for e := range next {
				c, err := l.readCommit(e.name)
				mu.Lock()
				got(e, c, err)
				mu.Unlock()
			}
		})
	}
	for _, e := range list {
		next <- e
	}
	close(next)
	wg.Wait()
}

// overlay shows the commits as they will be when the change of the layout that
// is under way has reached them.
func (l *Lake) overlay() error {
	ch, swapped, err := l.readChange()
	if err != nil || !swapped {
		return err
	}
	for _, m := range ch.Moves {
		c, ok := l.idx.commits[m.TraceID]
		if !ok {
			continue
		}
		c.Files = slices.Clone(c.Files)
		if c.move(m) {
			l.idx.add(c) // without its stamp: to be read again
		}
	}
	return nil
}

func (l *Lake) load() error {
	if l.idx.loaded {
		return nil
	}
	return l.refresh()
}

// Commits returns every committed trace, ordered by run, rank and trace ID.
func (l *Lake) Commits() ([]Commit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.refresh()
	out := make([]Commit, 0, len(l.idx.commits))
	for _, c := range l.idx.commits {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		if a.Run != b.Run {
			return a.Run < b.Run
		}
		if ra, rb := a.PathRank(), b.PathRank(); ra != rb {
			return ra < rb
		}
		return a.TraceID < b.TraceID
	})
	return out, err
}

// Settled returns the commits of one moment: where some were written while they
// were read, which happens when files are moved, it reads those again.
func (l *Lake) Settled() (commits []Commit, err error) {
	if l.Remote() {
		return l.Commits() // nothing is moved there
	}
	for range 5 {
		before := modTime(l.meta(commitsDir))
		commits, err = l.Commits()
		if err != nil || modTime(l.meta(commitsDir)).Equal(before) {
			break
		}
	}
	return commits, err
}

// modTime returns the time of the last change, or no time where there is none.
func modTime(path string) (t time.Time) {
	if st, err := os.Stat(path); err == nil {
		t = st.ModTime()
	}
	return t
}

// Done reports whether a file was imported with the same options: its path,
// size and modification time are those of a commit, and the files of the
// commit are in place, and so is the trace that holds its rows where it has none.
// It does not look at the content.
func (l *Lake) Done(src Source, options string) (Commit, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.load() != nil && len(l.idx.commits) == 0 {
		return Commit{}, false
	}
	c, ok := l.idx.commits[l.idx.bySource[src]]
	if ok && c.Options == options && l.present(&c) && l.rowsThere(&c) {
		return c, true
	}
	return Commit{}, false
}

// rowsThere reports whether the trace is there that a twin refers to. It may have
// been taken out while the twin was committed.
func (l *Lake) rowsThere(c *Commit) bool {
	if _, known := l.idx.commits[c.DuplicateOf]; known || c.DuplicateOf == "" {
		return true
	}
	_, err := l.readCommit(c.DuplicateOf)
	return err == nil
}

// Holding returns the traces that came from some files, by path, as far as this
// process knows the lake.
func (l *Lake) Holding(paths map[string]bool) (map[string][]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.load(); err != nil && !OnlyDamaged(err) {
		return nil, err
	}
	out := map[string][]string{}
	for id, c := range l.idx.commits {
		if paths[c.Source.Path] {
			out[c.Source.Path] = append(out[c.Source.Path], id)
		}
	}
	return out, nil
}

// DoneContent returns the trace with the given content, whatever its path and
// options. Rejected inputs do not count. It reads one commit and not all.
func (l *Lake) DoneContent(contentDigest string) (Commit, bool) {
	id, err := TraceID(contentDigest)
	if err != nil {
		return Commit{}, false
	}
	c, err := l.readCommit(id)
	if err != nil || c.ContentDigest != contentDigest || c.Outcome == OutcomeRejected {
		return Commit{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ok := l.present(&c)
	return c, ok
}

// AnyCommit returns one of the commits; which one is left open. It reads one
// and not all.
func (l *Lake) AnyCommit() (c Commit, ok bool, err error) {
	err = l.at.visit(MetaDir+"/"+commitsDir, func(name string) bool {
		id, isCommit := strings.CutSuffix(name, commitSuffix)
		if !isCommit || !traceIDPattern.MatchString(id) {
			return false
		}
		some, err := l.readCommit(id)
		if err == nil {
			c, ok = some, true
		}
		return ok
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, false, fmt.Errorf("lake: %w", err)
	}
	return c, ok, nil
}

// present reports whether the files of a commit are in place, wherever they
// were moved since it was read.
func (l *Lake) present(c *Commit) bool {
	if l.intact(c) {
		return true
	}
	now, err := l.readCommit(c.TraceID)
	if err != nil {
		return false
	}
	l.idx.add(now)
	if l.overlay() != nil {
		return false
	}
	*c = l.idx.commits[c.TraceID]
	return l.intact(c)
}

func (l *Lake) pathsOfCommits() map[string]bool {
	live := map[string]bool{}
	for _, c := range l.idx.commits {
		for _, f := range c.Files {
			live[filepath.FromSlash(f.Path)] = true
		}
	}
	return live
}
