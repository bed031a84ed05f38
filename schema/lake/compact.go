package lake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tracelake/internal/filelock"
	"tracelake/schema"
	"tracelake/schema/columnar"
)

// CompactOptions say what Compact merges.
type CompactOptions struct {
	TargetBytes int64                                      // size of a merged file; parts of half that size stay as they are
	Runs        []string                                   // nil: all
	Compression columnar.Compression                       // of merged files
	Progress    func(table, dir string, before, after int) // called per directory
}

// Compacted counts what Compact did.
type Compacted struct {
	Merged int   `json:"merged_files"` // files that are no more
	Into   int   `json:"new_files"`    // files that hold their rows
	Before int64 `json:"merged_bytes"` // bytes of the former
	After  int64 `json:"new_bytes"`    // bytes of the latter
	Left   int   `json:"left_files"`   // small files of another schema version, left alone
	Busy   int   `json:"busy_dirs"`    // directories in which another process changed something meanwhile
}

// Compact merges the small parts of each table, run and rank into files of
// about the target size, in the order of the trace IDs. A directory changes in
// one step, so that readers see the parts or what they were merged into, never
// both. It is safe beside imports and beside another Compact, and after a kill
// at any point everything is as before or as after a step. In an object store
// that holds for those who ask commits which rows count; see compactObjects.
func (l *Lake) Compact(ctx context.Context, opts CompactOptions) (sum Compacted, err error) {
	if l.writer == "" {
		return sum, errors.New("lake: opened for reading")
	}
	if o := l.remote(); o != nil {
		return sum, o.compact(ctx, l, &opts, &sum)
	}
	if !filelock.Have {
		return sum, errors.New("lake: compacting needs file locks, which this system lacks")
	}
	if err := l.settle(); err != nil {
		return sum, err
	}
	dirs, err := l.partsByDir(opts.Runs)
	if err != nil {
		return sum, err
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		bins := sum.plan(dirs[dir], opts.TargetBytes)
		if len(bins) == 0 {
			continue
		}
		before := sum
		if err := l.compactDir(dir, bins, opts, &sum); err != nil {
			return sum, err
		}
		if opts.Progress != nil && sum.Into > before.Into {
			table, _, _ := strings.Cut(dir, "/")
			opts.Progress(table, dir, sum.Merged-before.Merged, sum.Into-before.Into)
		}
	}
	return sum, l.Refresh()
}

// part is a file of a table with the traces whose rows it holds.
type part struct {
	File
	current bool // of the schema version of this program
	rows    map[string]int64
	first   string // smallest trace ID
	state   os.FileInfo
}

// stale reports whether a file holds rows that are no more: their traces were
// imported again, or removed. Where files are shared without locks it can happen.
func (p *part) stale() bool {
	live := int64(0)
	for _, n := range p.rows {
		live += n
	}
	return live < p.FileRows || live > 0 && p.uncounted()
}

// uncounted reports whether no commit says how many rows a shared file has in all:
// it is empty, or was written when that was not counted.
func (f *File) uncounted() bool { return f.Shared && f.FileRows == 0 }

// mixed reports whether a file may hold rows that do not count.
func (p *part) mixed() bool { return p.stale() || p.uncounted() }

// source names the rows of a file that count, given where the file is.
func (p *part) source(file string) columnar.Source {
	s := columnar.Source{Path: file}
	if p.mixed() {
		s.Keep = map[string]bool{}
		for id := range p.rows {
			s.Keep[id] = true
		}
	}
	return s
}

// partsByDir returns the committed Parquet files by directory.
func (l *Lake) partsByDir(runs []string) (map[string][]*part, error) {
	commits, err := l.Commits()
	if err != nil {
		return nil, err
	}
	parts := map[string]*part{}
	dirs := map[string][]*part{}
	for _, c := range commits {
		for _, f := range c.Files {
			if !strings.HasSuffix(f.Path, partExt) {
				continue
			}
			p := parts[f.Path]
			if p == nil {
				p = &part{File: f, current: true, rows: map[string]int64{}}
				parts[f.Path] = p
				if inRuns(f.Path, runs) {
					dirs[path.Dir(f.Path)] = append(dirs[path.Dir(f.Path)], p)
				}
			}
			p.rows[c.TraceID] = f.Rows
			p.current = p.current && c.SchemaVersion == schema.Version
		}
	}
	for _, p := range parts {
		p.first = slices.Min(slices.Collect(maps.Keys(p.rows)))
	}
	return dirs, nil
}

// inRuns reports whether a part belongs to one of the runs, or to a table that
// is not divided by runs.
func inRuns(p string, runs []string) bool {
	_, rest, _ := strings.Cut(p, "/")
	run, divided := strings.CutPrefix(path.Dir(path.Dir(rest)), "run=")
	return len(runs) == 0 || !divided || slices.Contains(runs, run)
}

// plan says which parts of a directory are merged with which.
func (c *Compacted) plan(parts []*part, target int64) (bins [][]*part) {
	slices.SortFunc(parts, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.Path, b.Path))
	})
	var bin []*part
	size := int64(0)
	end := func() {
		if len(bin) > 1 || len(bin) == 1 && bin[0].stale() {
			bins = append(bins, bin)
		}
		bin, size = nil, 0
	}
	for _, p := range parts {
		switch {
		case p.Bytes >= target/2 && !p.stale():
			continue
		case !p.current:
			c.Left++
			continue
		}
		bin, size = append(bin, p), size+p.Bytes
		if size >= target {
			end()
		}
	}
	end()
	return bins
}

// compactDir merges the parts of one directory.
func (l *Lake) compactDir(dir string, bins [][]*part, o CompactOptions, sum *Compacted) error {
	staged, txn, err := l.stage()
	if err != nil {
		return err
	}
	defer txn.Abort() //nolint:errcheck // what could not be removed is swept later
	ch := change{Dir: dir}
	var before, after int64
	for _, bin := range bins {
		f, err := l.merge(staged, dir, bin, &ch, columnar.Options{Compression: o.Compression})
		switch {
		case errors.Is(err, columnar.ErrOtherColumns):
			sum.Left += len(bin)
			continue
		case errors.Is(err, fs.ErrNotExist):
			sum.Busy++ // replaced or compacted since its commit was read
			return nil
		case err != nil:
			return err
		}
		after += f.Bytes
		for _, p := range bin {
			before += p.Bytes
		}
	}
	if len(ch.Add) == 0 {
		return nil
	}
	lock, err := l.moveAlone()
	if err != nil {
		return err
	}
	defer lock.Close()
	same, err := l.unchanged(bins, &ch)
	if err != nil {
		return err
	}
	if !same {
		sum.Busy++
		return nil
	}
	if err := l.carryOut(&ch, staged); err != nil {
		return err
	}
	sum.Merged += len(ch.Remove)
	sum.Into += len(ch.Add)
	sum.Before += before
	sum.After += after
	return nil
}

// merge writes one file from several parts and adds it to a change.
func (l *Lake) merge(staged, dir string, bin []*part, ch *change, o columnar.Options) (File, error) {
	table := bin[0].Table
	var from []columnar.Source
	var names []string
	for _, p := range bin {
		st, err := os.Stat(l.Abs(p.Path))
		if err != nil {
			return File{}, err
		}
		p.state = st
		from = append(from, p.source(l.Abs(p.Path)))
		names = append(names, p.Path)
	}
	f, counts, err := writePart(staged, dir, table, from, mergedName(names), o)
	if err != nil {
		return f, err
	}
	return f, ch.merged(dir, bin, f, counts)
}

// merged notes that a file takes the place of others, given the rows by trace
// that were found in them.
func (ch *change) merged(dir string, bin []*part, f File, counts map[string]int64) error {
	total := f.Rows
	for _, p := range bin {
		for id, n := range p.rows {
			to := f
			to.Rows, to.Shared, to.FileRows = n, true, total
			ch.Moves = append(ch.Moves, move{TraceID: id, From: p.Path, To: to})
			counts[id] -= n
		}
		ch.Remove = append(ch.Remove, p.Path)
	}
	for id, n := range counts {
		if n != 0 {
			return fmt.Errorf("lake: %s: the files hold %+d rows of trace %s more than their commit says; import it again with --force", dir, n, id)
		}
	}
	ch.Add = append(ch.Add, f)
	return nil
}

// writePart merges files into one with the given name below staged.
func writePart(staged, dir, table string, from []columnar.Source, name string, o columnar.Options) (f File, rows map[string]int64, err error) {
	t := schema.TableByName(table)
	if t == nil {
		if t, err = columnar.ReadTable(from[0].Path, table); err != nil {
			return f, nil, err
		}
	}
	return writeMerged(staged, dir, t, from, name, o)
}

func writeMerged(staged, dir string, t *schema.Table, from []columnar.Source, name string, o columnar.Options) (f File, rows map[string]int64, err error) {
	out, err := os.OpenFile(filepath.Join(staged, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return f, nil, fmt.Errorf("lake: %w", err)
	}
	rows, size, err := columnar.Merge(out, t, from, o)
	if err != nil {
		return f, nil, errors.Join(err, out.Close(), os.Remove(out.Name()))
	}
	if _, err := syncFile(out); err != nil {
		return f, nil, fmt.Errorf("lake: %w", err)
	}
	f = File{Table: t.Name, Path: path.Join(dir, name), Bytes: size}
	for _, n := range rows {
		f.Rows += n
	}
	return f, rows, nil
}

// mergedName names the file that takes the place of others.
func mergedName(paths []string) string {
	sum := sha256.Sum256([]byte("merged\n" + strings.Join(paths, "\n")))
	return "part-" + hex.EncodeToString(sum[:])[:partHexLen] + partExt
}

// unchanged reports whether the parts of a change are still those that were
// read, and those of their commits. The caller holds the layout alone.
func (l *Lake) unchanged(bins [][]*part, ch *change) (bool, error) {
	for _, p := range slices.Concat(bins...) {
		if !slices.Contains(ch.Remove, p.Path) {
			continue
		}
		st, err := os.Stat(l.Abs(p.Path))
		if err != nil && unreadable(err) {
			return false, fmt.Errorf("lake: %w", err)
		}
		if err != nil || !os.SameFile(st, p.state) || st.Size() != p.state.Size() || !st.ModTime().Equal(p.state.ModTime()) {
			return false, nil
		}
	}
	for _, m := range ch.Moves {
		c, err := l.readCommit(m.TraceID)
		if err != nil && unreadable(err) {
			return false, fmt.Errorf("lake: %w", err)
		}
		if err != nil || !c.move(m) {
			return false, nil
		}
	}
	return true, nil
}

// detach gives a trace files of its own again, so that they can be replaced or
// removed.
func (l *Lake) detach(traceID string) error {
	lock, err := l.moveAlone()
	if err != nil {
		return err
	}
	defer lock.Close()
	dirs, err := l.partsByDir(nil)
	if err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		for _, p := range dirs[dir] {
			if _, ours := p.rows[traceID]; !ours {
				continue
			}
			if shared, err := l.sharesRows(p.File); err != nil {
				return err
			} else if !shared {
				continue
			}
			if err := l.split(dir, p, traceID); err != nil {
				return err
			}
		}
	}
	return nil
}

// split divides a file into the rows of one trace and those of the others.
func (l *Lake) split(dir string, p *part, traceID string) error {
	staged, txn, err := l.stage()
	if err != nil {
		return err
	}
	defer txn.Abort() //nolint:errcheck // what could not be removed is swept later
	ch := change{Dir: dir, Remove: []string{p.Path}}
	others := map[string]bool{}
	for id := range p.rows {
		others[id] = id != traceID
	}
	for i, keep := range []map[string]bool{{traceID: true}, others} {
		var ids []string
		for id, is := range keep {
			if is {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		from := []columnar.Source{{Path: l.Abs(p.Path), Keep: keep}}
		name := mergedName([]string{p.Path, traceID, fmt.Sprint(i)})
		f, _, err := writePart(staged, dir, p.Table, from, name, columnar.Options{})
		if err != nil {
			return err
		}
		ch.Add = append(ch.Add, f)
		for _, id := range ids {
			to := f
			to.Rows = p.rows[id]
			if len(ids) > 1 {
				to.Shared, to.FileRows = true, f.Rows
			}
			ch.Moves = append(ch.Moves, move{TraceID: id, From: p.Path, To: to})
		}
	}
	return l.carryOut(&ch, staged)
}

// stage makes a directory for the files of a change, which goes with its
// transaction.
func (l *Lake) stage() (dir string, txn *Txn, err error) {
	if txn, err = l.Begin(); err != nil {
		return "", nil, err
	}
	dir = filepath.Join(txn.dir, "layout")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", nil, errors.Join(fmt.Errorf("lake: %w", err), txn.Abort())
	}
	return dir, txn, nil
}
