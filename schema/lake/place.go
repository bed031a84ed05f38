package lake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tracelake/internal/regular"
	"tracelake/internal/store"
	"tracelake/schema/columnar"
)

// place is where a lake stands. Files are named by paths within the lake,
// separated by slashes. A file that is not there is fs.ErrNotExist.
type place interface {
	// path names a file for people and for other programs.
	path(rel string) string
	read(rel string) ([]byte, error)
	// readVersion returns with a file what swap wants.
	readVersion(rel string) (data []byte, version string, err error)
	size(rel string) (int64, error)
	// files lists a directory.
	files(dir string) ([]entry, error)
	// visit names the files of a directory, in any order, until f has enough.
	visit(dir string, f func(name string) (enough bool)) error
	// write writes a small file, of which readers see all or nothing.
	write(rel string, data []byte, mode writeMode) error
	// swap writes a small file in the place of the version that was read. Where it
	// is another one by now it fails with errSwapped, or does not care because
	// locks keep others away.
	swap(rel string, data []byte, version string) error
	// put gives a finished file of a transaction its place.
	put(file, rel string) error
	remove(rel string) error
}

// entry is a file of a directory, with what changes when its content does.
type entry struct {
	name  string
	stamp fileStamp
}

// placeOf returns the place that a path or URL names.
func placeOf(root string) (place, error) {
	if store.IsURL(root) {
		s, key, err := store.OpenURL(context.Background(), root)
		if err != nil {
			return nil, fmt.Errorf("lake: %w", err)
		}
		if key = strings.Trim(key, "/"); key != "" {
			key += "/"
		}
		return &objects{s: s, prefix: key}, nil
	}
	dir, err := store.Local(root)
	return directory(dir), err
}

// directory is a place in a file system. Locks keep its writers apart, and
// everything is durable when a method returns.
type directory string

func (d directory) path(rel string) string { return filepath.Join(string(d), filepath.FromSlash(rel)) }

func (d directory) read(rel string) ([]byte, error) { return regular.ReadFile(d.path(rel)) }

func (d directory) readVersion(rel string) (data []byte, version string, err error) {
	data, err = d.read(rel)
	return data, "", err
}

func (d directory) swap(rel string, data []byte, _ string) error {
	return d.write(rel, data, replaceFile)
}

func (d directory) size(rel string) (int64, error) {
	st, err := os.Stat(d.path(rel))
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (d directory) files(dir string) (out []entry, err error) {
	entries, err := os.ReadDir(d.path(dir))
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // otherwise removed since the directory was read
			out = append(out, entry{e.Name(), fileStamp{size: info.Size(), mtime: info.ModTime()}})
		}
	}
	return out, err
}

func (d directory) visit(dir string, f func(string) bool) error {
	open, err := os.Open(d.path(dir))
	if err != nil {
		return err
	}
	defer open.Close()
	for {
		names, err := open.Readdirnames(64)
		if slices.ContainsFunc(names, f) || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (d directory) write(rel string, data []byte, mode writeMode) error {
	return writeFile(d.path(rel), data, mode)
}

func (d directory) put(file, rel string) error {
	target := d.path(rel)
	dir := filepath.Dir(target)
	if err := mkdirSynced(dir); err != nil {
		return err
	}
	if err := os.Rename(file, target); err != nil {
		return err
	}
	return syncDir(dir)
}

func (d directory) remove(rel string) error { return os.Remove(d.path(rel)) }

// objects is a place in an object store. It has neither locks nor renames: what
// a writer puts there has its final name, and counts when its commit is there.
type objects struct {
	s      store.Store
	prefix string
}

// maxSmall bounds files that are read as a whole: commits, above all.
const maxSmall = 16 << 20

func (o *objects) path(rel string) string {
	return strings.TrimSuffix(o.s.URL(o.prefix+rel), "/")
}

func (o *objects) read(rel string) ([]byte, error) {
	return o.s.Get(context.Background(), o.prefix+rel, maxSmall)
}

// readLarge reads an object of at most limit bytes.
func (o *objects) readLarge(rel string, limit int64) ([]byte, error) {
	info, err := o.s.Stat(context.Background(), o.prefix+rel)
	if err != nil || info.Size > limit {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	return store.ReadAt(context.Background(), o.s, info, 0, info.Size)
}

func (o *objects) readVersion(rel string) (data []byte, version string, err error) {
	info, err := o.s.Stat(context.Background(), o.prefix+rel)
	if err != nil {
		return nil, "", err
	}
	if info.Size > maxSmall {
		return nil, "", fmt.Errorf("%s: %d bytes are too many", o.path(rel), info.Size)
	}
	data, err = store.ReadAt(context.Background(), o.s, info, 0, info.Size)
	return data, info.Version, err
}

// errSwapped means that a file is another one than when it was read.
var errSwapped = errors.New("changed meanwhile")

func (o *objects) swap(rel string, data []byte, version string) error {
	err := o.s.Put(context.Background(), o.prefix+rel, bytes.NewReader(data), int64(len(data)), store.If{Version: version})
	if kindOf(err) == store.Changed {
		return fmt.Errorf("%w: %w", errSwapped, err)
	}
	return err
}

// kindOf returns what is wrong in the words of package store.
func kindOf(err error) store.Kind {
	var e *store.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return store.Other
}

func (o *objects) size(rel string) (int64, error) {
	info, err := o.s.Stat(context.Background(), o.prefix+rel)
	return info.Size, err
}

func (o *objects) files(dir string) (out []entry, err error) {
	err = o.s.List(context.Background(), o.prefix+dir+"/", func(info store.Info) error {
		out = append(out, entry{path.Base(info.Key), fileStamp{info.Size, info.Modified, info.Version}})
		return nil
	})
	return out, err
}

// errEnough ends a listing early.
var errEnough = errors.New("enough")

func (o *objects) visit(dir string, f func(string) bool) error {
	err := o.s.List(context.Background(), o.prefix+dir+"/", func(info store.Info) error {
		if f(path.Base(info.Key)) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (o *objects) write(rel string, data []byte, mode writeMode) error {
	return o.s.Put(context.Background(), o.prefix+rel, bytes.NewReader(data), int64(len(data)), store.If{Absent: mode == createFile})
}

func (o *objects) put(file, rel string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return o.s.Put(context.Background(), o.prefix+rel, f, st.Size(), store.If{})
}

func (o *objects) remove(rel string) error {
	return o.s.Remove(context.Background(), o.prefix+rel)
}

// vacant makes sure that a new lake does not mix with other objects.
func (o *objects) vacant() error {
	err := o.s.List(context.Background(), o.prefix, func(info store.Info) error {
		rel := strings.TrimPrefix(info.Key, o.prefix)
		if rel != "" && !strings.HasPrefix(rel, MetaDir+"/") {
			return fmt.Errorf("%s holds %s but no %s/%s: %w; give an empty or a new prefix", o.path(""), rel, MetaDir, formatFile, ErrNotLake)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	return nil
}

// sweep finishes what a killed Compact left, and removes parts that no commit
// names and that are older than the limit.
func (o *objects) sweep(l *Lake, s *Swept, limit time.Time) error {
	ctx := context.Background()
	if err := l.Clean(ctx); err != nil {
		return err
	}
	live, err := o.live(l)
	if err != nil {
		return err
	}
	return o.s.List(ctx, o.prefix, func(info store.Info) error {
		rel := strings.TrimPrefix(info.Key, o.prefix)
		if !isPart(rel) || live[rel] || !info.Modified.Before(limit) {
			return nil
		}
		if err := o.remove(rel); err != nil {
			return err
		}
		s.Parts++
		s.Bytes += info.Size
		return nil
	})
}

// write writes a value as JSON.
func (l *Lake) write(rel string, v any, mode writeMode) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	if err := l.at.write(rel, data, mode); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	return nil
}

// encode makes the content of a small file.
func encode(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	return append(data, '\n'), nil
}

// WriteMeta writes a file beside format.json, in the place of an older one.
func (l *Lake) WriteMeta(name string, data []byte) error {
	if err := l.at.write(MetaDir+"/"+name, data, replaceFile); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	return nil
}

// Fetch copies a part of a lake in an object store into a new file: all of it, or
// the rows of the traces that Keep names. The part is named as in its commit.
func (l *Lake) Fetch(ctx context.Context, rel, to string, keep map[string]bool) error {
	o := l.remote()
	if o == nil {
		return fmt.Errorf("lake: %s is not in an object store", l.Root())
	}
	whole := to
	if keep != nil {
		whole += ".whole"
		defer os.Remove(whole)
	}
	info, err := o.s.Stat(ctx, o.prefix+rel)
	if err == nil {
		err = store.Download(ctx, o.s, info, whole)
	}
	if err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	if keep == nil {
		return nil
	}
	return rowsOf(to, rel, columnar.Source{Path: whole, Keep: keep})
}

// rowsOf writes some rows of a part into a new file.
func rowsOf(to, rel string, from columnar.Source) error {
	table, _, _ := strings.Cut(rel, "/")
	dir, name, o := filepath.Dir(to), filepath.Base(to), columnar.Options{}
	_, _, err := writePart(dir, "", table, []columnar.Source{from}, name, o)
	if !errors.Is(err, columnar.ErrOtherColumns) {
		return err
	}
	t, err := columnar.ReadTable(from.Path, table) // of another schema version
	if err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	_, _, err = writeMerged(dir, "", t, []columnar.Source{from}, name, o)
	return err
}

// remote returns where the lake stands in an object store, or nil.
func (l *Lake) remote() *objects {
	o, _ := l.at.(*objects)
	return o
}
