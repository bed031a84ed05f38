package lake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tracelake/internal/scratch"
	"tracelake/internal/store"
	"tracelake/schema/columnar"
)

// movesDir holds the journals of relocations that are not finished.
const movesDir = MetaDir + "/moves"

// relocation is a change of several directories in an object store, where they
// cannot be swapped. It is carried out commit by commit: each says of one trace
// whether its rows are in the old files or in the new one. Any process can
// finish it, several at once.
type relocation struct {
	change
	// Commits are digests of what commits said, but for their files, by trace. A
	// trace that was imported again has another one, and stays where it is.
	Commits map[string]string `json:"commits"`
	// Stale are those of the removed files that have rows of traces unknown when
	// the relocation was planned. Another one may just be giving them traces.
	Stale []string `json:"stale,omitempty"`
}

// downloads is how many objects are copied here at once.
const downloads = 8

// compact merges the small parts of each table, run and rank. Merged files come
// first, under names that no commit has yet; then each commit is replaced by one
// that names them, on the condition that it is the one that was read; then the
// files that no commit names any more go. Where a trace was imported again in
// the meantime, the merged file has rows that do not count: readers take of a
// shared file the rows of traces whose commits name it, and the next run cleans
// it. What a kill leaves the next run finishes.
func (o *objects) compact(ctx context.Context, l *Lake, opts *CompactOptions, sum *Compacted) error {
	doubtful := map[string]bool{}
	if err := o.finishMoves(ctx, l, doubtful); err != nil {
		return err
	}
	dirs, err := l.partsByDir(opts.Runs)
	if err != nil {
		return err
	}
	known := false // that the store can do it
	for _, group := range groups(dirs) {
		bins := map[string][][]*part{}
		for _, dir := range group {
			if b := sum.plan(dirs[dir], opts.TargetBytes); len(b) > 0 {
				bins[dir] = b
			}
		}
		if len(bins) == 0 {
			continue
		}
		if !known {
			if err := o.conditional(); err != nil {
				return err
			}
			known = true
		}
		if err := o.compactGroup(ctx, l, bins, opts, sum, doubtful); err != nil {
			return err
		}
	}
	return o.removeUnnamed(l, doubtful)
}

// groups returns the directories of each run and rank, and those of tables that
// are not divided, so that a commit changes once for all of its tables.
func groups(dirs map[string][]*part) (out [][]string) {
	by := map[string][]string{}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		_, key, _ := strings.Cut(dir, "/")
		by[key] = append(by[key], dir)
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[key])
	}
	return out
}

// conditional makes sure that the store refuses a write whose condition does not
// hold. One that does not know conditions would lose commits.
func (o *objects) conditional() error {
	probe := MetaDir + "/probe-" + randomName()
	err := o.swap(probe, []byte("{}\n"), "1")
	if errors.Is(err, errSwapped) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s: the store ignores conditions of writes (If-Match), without which files cannot be merged: copy the dataset to a file system and compact it there", o.path(""))
		err = errors.Join(err, o.remove(probe))
	}
	return fmt.Errorf("lake: %w", err)
}

func (o *objects) compactGroup(ctx context.Context, l *Lake, bins map[string][][]*part, opts *CompactOptions, sum *Compacted, doubtful map[string]bool) error {
	r := relocation{Commits: map[string]string{}}
	var before, after int64
	for _, dir := range slices.Sorted(maps.Keys(bins)) {
		for _, bin := range bins[dir] {
			f, err := o.merge(ctx, l, dir, bin, &r, opts)
			switch {
			case errors.Is(err, columnar.ErrOtherColumns):
				sum.Left += len(bin)
				continue
			case errors.Is(err, fs.ErrNotExist), kindOf(err) == store.Changed:
				sum.Busy++ // replaced or merged since its commit was read
				continue
			case err != nil:
				return err
			}
			after += f.Bytes
			for _, p := range bin {
				before += p.Bytes
			}
		}
	}
	if len(r.Add) == 0 {
		return nil
	}
	l.mu.Lock()
	for _, m := range r.Moves {
		c := l.idx.commits[m.TraceID]
		r.Commits[m.TraceID] = c.identity()
	}
	l.mu.Unlock()
	journal := movesDir + "/" + strings.TrimSuffix(mergedName(pathsOf(r.Add)), partExt) + commitSuffix
	if err := l.write(journal, &r, replaceFile); err != nil {
		return err
	}
	if err := o.carryOut(ctx, l, &r, journal, doubtful); err != nil {
		return err
	}
	sum.Merged += len(r.Remove)
	sum.Into += len(r.Add)
	sum.Before += before
	sum.After += after
	if opts.Progress != nil {
		for _, dir := range slices.Sorted(maps.Keys(bins)) {
			table, _, _ := strings.Cut(dir, "/")
			opts.Progress(table, dir, countIn(dir, r.Remove), countIn(dir, pathsOf(r.Add)))
		}
	}
	return nil
}

func pathsOf(files []File) (out []string) {
	for _, f := range files {
		out = append(out, f.Path)
	}
	return out
}

func countIn(dir string, paths []string) (n int) {
	for _, p := range paths {
		if path.Dir(p) == dir {
			n++
		}
	}
	return n
}

// merge writes one object from several, by way of this machine.
func (o *objects) merge(ctx context.Context, l *Lake, dir string, bin []*part, r *relocation, opts *CompactOptions) (f File, err error) {
	size := int64(0)
	// The name tells everything that the bytes depend on: two processes may be
	// writing the same one.
	names := []string{"compression", strconv.Itoa(int(opts.Compression)), l.writer}
	for _, p := range bin {
		size += p.Bytes
		names = append(names, p.Path)
		if p.mixed() {
			names = append(names, slices.Sorted(maps.Keys(p.rows))...)
		}
	}
	if room := scratch.Room(); 2*size > room {
		return f, fmt.Errorf("lake: %s: files of %d bytes are copied to %s to merge them, where %d may be used: give it more room, name another directory with TMPDIR, or merge into smaller files", o.path(dir), size, os.TempDir(), room)
	}
	tmp, err := scratch.New()
	if err != nil {
		return f, fmt.Errorf("lake: %w", err)
	}
	defer tmp.Remove() //nolint:errcheck // the next sweep tries again
	from, err := o.download(ctx, bin, tmp.Path())
	if err != nil {
		return f, err
	}
	f, counts, err := writePart(tmp.Path(), dir, bin[0].Table, from, mergedName(names), columnar.Options{Compression: opts.Compression})
	if err != nil {
		return f, err
	}
	file := filepath.Join(tmp.Path(), path.Base(f.Path))
	if o.restsAt(f.Path) {
		f.Path = path.Join(dir, mergedName(append(names, randomName())))
	}
	if err := o.put(file, f.Path); err != nil {
		return f, fmt.Errorf("lake: %w", err)
	}
	for _, p := range bin {
		if p.mixed() {
			r.Stale = append(r.Stale, p.Path)
		}
	}
	return f, r.merged(dir, bin, f, counts)
}

// download copies parts to a directory of this machine.
func (o *objects) download(ctx context.Context, bin []*part, dir string) ([]columnar.Source, error) {
	from := make([]columnar.Source, len(bin))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(downloads)
	for i, p := range bin {
		to := filepath.Join(dir, "from-"+strconv.Itoa(i))
		from[i] = p.source(to)
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			info, err := o.s.Stat(ctx, o.prefix+p.Path)
			if err == nil && info.Size != p.Bytes {
				err = store.NewError(o.path(p.Path), store.Changed, nil)
			}
			if err == nil {
				err = store.Download(ctx, o.s, info, to)
			}
			return err
		})
	}
	return from, g.Wait()
}

// identity is a digest of what a commit says, save for where the rows are.
func (c *Commit) identity() string {
	x := *c
	x.Files = nil
	for _, f := range c.Files {
		x.Files = append(x.Files, File{Table: f.Table, Rows: f.Rows})
	}
	data, _ := json.Marshal(x) // plain values only
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// carryOut makes commits name the new files of a relocation and removes those
// that none of them names any more. Those that another process may just be
// about to name it leaves to removeUnnamed.
func (o *objects) carryOut(ctx context.Context, l *Lake, r *relocation, journal string, doubtful map[string]bool) error {
	for _, f := range r.Add {
		size, err := o.size(f.Path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && size != f.Bytes {
			return o.remove(journal) // swept while its writer rested: nothing was moved
		}
		if err != nil {
			return fmt.Errorf("lake: %w", err)
		}
	}
	moves := map[string][]move{}
	for _, m := range r.Moves {
		moves[m.TraceID] = append(moves[m.TraceID], m)
	}
	named := map[string]bool{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readAtOnce)
	for _, id := range slices.Sorted(maps.Keys(moves)) {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			files, err := l.relocate(id, r.Commits[id], moves[id])
			mu.Lock()
			defer mu.Unlock()
			for _, f := range files {
				named[f.Path] = true
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, p := range slices.Concat(r.Stale, pathsOf(r.Add)) {
		doubtful[p] = doubtful[p] || !named[p]
	}
	var removal errgroup.Group
	removal.SetLimit(readAtOnce)
	for _, p := range r.Remove {
		if !named[p] && !slices.Contains(r.Stale, p) {
			removal.Go(func() error { return o.remove(p) })
		}
	}
	err := removal.Wait()
	if err == nil {
		err = o.remove(journal)
	}
	if err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	return nil
}

// relocate makes the commit of a trace name new files, where it is the one that
// was read when they were written, and returns the files that it names then.
func (l *Lake) relocate(traceID, identity string, moves []move) ([]File, error) {
	for range maxSwaps {
		c, version, err := l.readCommitVersion(traceID)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if kindOf(err) == store.Changed {
			continue
		}
		if err != nil {
			return nil, err
		}
		moved := false
		for _, m := range moves {
			moved = c.identity() == identity && c.move(m) || moved
		}
		if !moved {
			return c.Files, nil
		}
		data, err := encode(&c)
		if err == nil {
			err = l.at.swap(commitPath(traceID), data, version)
		}
		if errors.Is(err, errSwapped) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("lake: %w", err)
		}
		l.remember(c)
		return c.Files, nil
	}
	return nil, fmt.Errorf("lake: %s: others write to it all the time; try again later", l.at.path(commitPath(traceID)))
}

// unfinished returns the relocations that were begun, by their journals.
func (o *objects) unfinished() (map[string]*relocation, error) {
	entries, err := o.files(movesDir)
	if err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	out := map[string]*relocation{}
	for _, e := range entries {
		name := movesDir + "/" + e.name
		data, err := o.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // finished
		}
		r := &relocation{}
		if err == nil {
			err = json.Unmarshal(data, r)
		}
		if err == nil {
			err = r.check()
		}
		if err != nil {
			return nil, fmt.Errorf("lake: %s: %w", o.path(name), err)
		}
		out[name] = r
	}
	return out, nil
}

// check makes sure that a journal cannot lead out of the tables.
func (r *relocation) check() error {
	paths := slices.Concat(r.Remove, r.Stale, pathsOf(r.Add))
	for _, m := range r.Moves {
		if !traceIDPattern.MatchString(m.TraceID) {
			return fmt.Errorf("trace ID %q", m.TraceID)
		}
		paths = append(paths, m.To.Path)
	}
	for _, p := range paths {
		if !isPart(p) {
			return fmt.Errorf("file %q is no part of a table", p)
		}
	}
	return nil
}

// finishMoves finishes the relocations that others began.
func (o *objects) finishMoves(ctx context.Context, l *Lake, doubtful map[string]bool) error {
	all, err := o.unfinished()
	if err != nil {
		return err
	}
	for _, journal := range slices.Sorted(maps.Keys(all)) {
		if err := o.carryOut(ctx, l, all[journal], journal, doubtful); err != nil {
			return err
		}
	}
	return nil
}

// removeUnnamed removes those of the files that no commit names and none is about
// to name.
func (o *objects) removeUnnamed(l *Lake, files map[string]bool) error {
	live, err := o.live(l)
	if err != nil {
		return err
	}
	for p, doubtful := range files {
		if doubtful && !live[p] {
			if err := o.remove(p); err != nil {
				return fmt.Errorf("lake: %w", err)
			}
		}
	}
	return nil
}

// live returns the files that commits name, or will name when the relocations
// that are under way have reached them. A commit that cannot be read may name any
// file, so that there is no answer then.
func (o *objects) live(l *Lake) (map[string]bool, error) {
	begun, err := o.unfinished() // before commits: a finished one has changed them
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return nil, err
	}
	live := map[string]bool{}
	for _, c := range l.idx.commits {
		for _, f := range c.Files {
			live[f.Path] = true
		}
	}
	for _, r := range begun {
		for _, f := range r.Add {
			live[f.Path] = true
		}
	}
	return live, nil
}

// youngPart is the age up to which a part without a commit is taken for that of an
// import that goes on or was just killed. Whoever removes such parts waits longer.
const youngPart = time.Hour

// restsAt reports whether an object of a name is there that somebody may be about
// to remove, since no commit names it and it is not young.
func (o *objects) restsAt(rel string) bool {
	info, err := o.s.Stat(context.Background(), o.prefix+rel)
	return err == nil && time.Since(info.Modified) > youngPart
}

// maybeRemoved reports whether another process may be about to remove parts that
// have the names of those of a commit that is not there yet: it found them without
// a commit, or merged them when they had one. Where the parts are young, they are
// those of a writer of the same bytes, alive or killed, and are taken over.
func (o *objects) maybeRemoved(c *Commit) bool {
	ours := map[string]bool{}
	for _, f := range c.Files {
		ours[f.Path] = true
	}
	begun, err := o.unfinished()
	if err != nil {
		return true // nobody knows
	}
	for _, r := range begun {
		if slices.ContainsFunc(r.Remove, func(p string) bool { return ours[p] }) {
			return true
		}
	}
	var resting atomic.Bool
	_ = beside(flushedAtOnce, c.Files, func(f *File) error { // which returns no error
		if o.restsAt(f.Path) {
			resting.Store(true)
		}
		return nil
	})
	return resting.Load()
}

// Clean takes rows that no longer count out of shared files, and finishes what a
// killed Compact left in an object store. On a file system there are such rows only
// where a commit was damaged.
func (l *Lake) Clean(ctx context.Context) error {
	if !l.Remote() && !l.anyStale() {
		return nil
	}
	_, err := l.Compact(ctx, CompactOptions{TargetBytes: 1}) // of which every file has the size
	return err
}

// anyStale reports whether a shared file has more rows than those of the traces
// that this process knows.
func (l *Lake) anyStale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	shared := map[string]*part{}
	for id, c := range l.idx.commits {
		for _, f := range c.Files {
			if !f.Shared {
				continue
			}
			if shared[f.Path] == nil {
				shared[f.Path] = &part{File: f, rows: map[string]int64{}}
			}
			shared[f.Path].rows[id] = f.Rows
		}
	}
	for _, p := range shared {
		if p.stale() {
			return true
		}
	}
	return false
}

// Keep names the traces whose rows in a shared file count, by its path within the
// lake, where it has rows of others.
func Keep(commits []Commit) map[string]map[string]bool {
	rows := map[string]int64{}
	traces := map[string]map[string]bool{}
	total := map[string]int64{}
	for _, c := range commits {
		for _, f := range c.Files {
			if !f.Shared {
				continue
			}
			if traces[f.Path] == nil {
				traces[f.Path] = map[string]bool{}
			}
			traces[f.Path][c.TraceID] = true
			rows[f.Path] += f.Rows
			total[f.Path] = f.FileRows
		}
	}
	maps.DeleteFunc(traces, func(p string, _ map[string]bool) bool { return total[p] > 0 && rows[p] == total[p] })
	return traces
}
