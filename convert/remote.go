package convert

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"tracelake/internal/digest"
	"tracelake/internal/scratch"
	"tracelake/internal/store"
	"tracelake/nsight"
	"tracelake/schema/lake"
)

// remote is an input in an object store: one object, or the files of an export
// that is a directory.
type remote struct {
	s     store.Store
	files []store.Info
	dir   bool
}

// unreadError says that an input could not be read, which tells nothing about
// it. It names the input.
type unreadError struct{ err error }

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

func (r *remote) bytes() (n int64) {
	for _, f := range r.files {
		n += f.Size
	}
	return n
}

// source describes the input as sourceOf does local ones.
func (r *remote) source(name string) lake.Source {
	src := lake.Source{Path: name, Bytes: r.bytes()}
	for _, f := range r.files {
		src.MTimeNS = max(src.MTimeNS, f.Modified.UnixNano())
	}
	return src
}

// storedSum is the digest of the input as stored, as storedSum of local ones.
func (r *remote) storedSum(ctx context.Context) (string, error) {
	sumOf := func(info store.Info) (string, error) {
		h := digest.New()
		f := store.Open(ctx, r.s, info)
		defer f.Close()
		_, err := io.Copy(h, f)
		return digest.Text(h), err
	}
	if !r.dir {
		return sumOf(r.files[0])
	}
	h := digest.New()
	for _, f := range r.files {
		sum, err := sumOf(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, path.Base(f.Key), sum)
	}
	return digest.Text(h), nil
}

// remoteFile marks the errors of reading an input.
type remoteFile struct{ *store.File }

func (f remoteFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &unreadError{err}
	}
	return n, err
}

// readerOf returns the reader of an input, told by its content. Kineto traces of
// an object store are read as they come; what is read here and there is copied
// first. Done ends the use of the reader, whatever the error.
func (c *importer) readerOf(ctx context.Context, in Input, file string) (from reader, done func(), err error) {
	done = func() {}
	if in.remote == nil {
		kind, err := nsight.Identify(file)
		if err != nil {
			return nil, done, &unreadError{err}
		}
		return readerFor(file, kind), done, nil
	}
	r := in.remote
	defer func() {
		if err != nil {
			err = &unreadError{err}
		}
	}()
	if !r.dir {
		head, err := store.ReadAt(ctx, r.s, r.files[0], 0, nsight.HeadSize)
		if err != nil {
			return nil, done, err
		}
		if nsight.SniffHead(r.files[0].Key, head) == nsight.None {
			k, err := r.kineto(ctx, head)
			return k, done, err
		}
	}
	limit := scratch.Room()
	if c.o.MaxCopy > 0 {
		limit = min(limit, c.o.MaxCopy)
	}
	dir, done, err := store.Fetch(ctx, r.s, r.files, limit)
	if err != nil {
		return nil, func() {}, err
	}
	if !r.dir {
		dir = filepath.Join(dir, path.Base(r.files[0].Key))
	}
	return readerOf(dir), done, nil
}

// kineto returns a reader of a trace that begins with head.
func (r *remote) kineto(ctx context.Context, head []byte) (*kinetoReader, error) {
	k := &kinetoReader{open: func(ctx context.Context) (io.ReadCloser, error) {
		return remoteFile{store.Open(ctx, r.s, r.files[0])}, nil
	}}
	if len(head) > 0 && (head[0] == '{' || head[0] == '[') { // only a plain file ends with what can be read
		start := max(0, r.files[0].Size-tailSize)
		tail, err := store.ReadAt(ctx, r.s, r.files[0], start, tailSize)
		if err != nil {
			return nil, err
		}
		k.how.BaseNS = baseIn(tail)
	}
	return k, nil
}

// objectInput is an input of one object.
func objectInput(s store.Store, info store.Info, named bool) Input {
	return Input{Path: s.URL(info.Key), Bytes: info.Size, Named: named, remote: &remote{s: s, files: []store.Info{info}}}
}

// discoverRemote finds inputs in an object store: an object, all below a prefix,
// or those that match a pattern.
func discoverRemote(ctx context.Context, arg string, out *Found, add func(Input)) error {
	s, key, err := store.OpenURL(ctx, arg)
	if err != nil {
		return err
	}
	if i := strings.IndexAny(key, "*["); i >= 0 {
		return discoverPattern(ctx, s, key, key[:i], out, add)
	}
	if key != "" && !strings.HasSuffix(key, "/") {
		info, err := s.Stat(ctx, key)
		if err == nil {
			add(objectInput(s, info, true))
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		key += "/"
	}
	var list []store.Info
	if err := s.List(ctx, key, func(info store.Info) error {
		list = append(list, info)
		return nil
	}); err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%s: no such object, and none whose key starts like that", s.URL(strings.TrimSuffix(key, "/")))
	}
	w := remoteWalk{s: s, root: key, out: out, add: add}
	return w.walk(ctx, list)
}

func discoverPattern(ctx context.Context, s store.Store, pattern, prefix string, out *Found, add func(Input)) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("%s: not a pattern", s.URL(pattern))
	}
	before := len(out.Inputs)
	err := s.List(ctx, prefix, func(info store.Info) error {
		if ok, _ := path.Match(pattern, info.Key); ok {
			add(objectInput(s, info, true))
		}
		return nil
	})
	if err == nil && len(out.Inputs) == before {
		err = fmt.Errorf("%s: no object matches", s.URL(pattern))
	}
	return err
}

// remoteWalk finds the inputs among the objects below a prefix.
type remoteWalk struct {
	s    store.Store
	root string
	out  *Found
	add  func(Input)
}

func (w *remoteWalk) walk(ctx context.Context, list []store.Info) error {
	skip := map[string]bool{}       // directories that are datasets
	exports := map[string]*remote{} // directories that are one input
	for _, info := range list {
		dir := path.Dir(info.Key)
		if path.Base(dir) == lake.MetaDir {
			skip[path.Dir(dir)] = true
		}
		if nsight.KindOfDir(info.Key) != nsight.None {
			exports[dir] = &remote{s: w.s, dir: true}
		}
	}
	var files []store.Info
	for _, info := range list {
		switch export := exports[path.Dir(info.Key)]; {
		case w.hidden(info.Key, skip):
		case export != nil:
			export.files = append(export.files, info)
		case info.Size > 0 || !strings.HasSuffix(info.Key, "/"): // not a directory of a browser
			files = append(files, info)
		}
	}
	is, err := w.traces(ctx, files)
	if err != nil {
		return err
	}
	for i, info := range files {
		if !is[i] {
			w.out.Ignored++
			continue
		}
		w.add(objectInput(w.s, info, false))
	}
	for _, info := range list { // in order
		dir := path.Dir(info.Key)
		if r := exports[dir]; r != nil && len(r.files) > 0 {
			w.add(Input{Path: w.s.URL(dir), Bytes: r.bytes(), remote: r})
		}
	}
	return nil
}

// hidden reports whether an object lies in a dataset or is hidden, below the
// root.
func (w *remoteWalk) hidden(key string, datasets map[string]bool) bool {
	rel := strings.TrimPrefix(key, w.root)
	if strings.HasPrefix(rel, ".") || strings.Contains(rel, "/.") {
		return true
	}
	for dir := path.Dir(key); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if datasets[dir] {
			return true
		}
	}
	return datasets["."]
}

// sniffers is how many objects are looked into at once.
const sniffers = 16

// traces tells which objects may be traces, as looksLikeTrace does.
func (w *remoteWalk) traces(ctx context.Context, files []store.Info) ([]bool, error) {
	is := make([]bool, len(files))
	errs := make([]error, len(files))
	gate := make(chan struct{}, sniffers)
	var wg sync.WaitGroup
	for i, info := range files {
		if is[i] = namedLikeTrace(info.Key); is[i] || ctx.Err() != nil {
			continue
		}
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			is[i], errs[i] = w.looksLikeTrace(ctx, info)
		})
	}
	wg.Wait()
	return is, errors.Join(errs...)
}

func (w *remoteWalk) looksLikeTrace(ctx context.Context, info store.Info) (bool, error) {
	head, err := store.ReadAt(ctx, w.s, info, 0, nsight.HeadSize)
	if err != nil {
		return false, err
	}
	switch nsight.SniffHead(info.Key, head) {
	case nsight.None:
		// Tables of collect are JSON, too, and are imported where collect left them.
		return !strings.HasSuffix(info.Key, ".jsonl") && startsLikeJSON(bufio.NewReader(bytes.NewReader(head)), 0), nil
	case nsight.SQLite:
		if strings.HasSuffix(info.Key, ".sqlite") {
			return true, nil
		}
		more, err := store.ReadAt(ctx, w.s, info, 0, 1<<20)
		return strings.Contains(string(more), "StringIds"), err
	case nsight.Report:
		return false, nil
	}
	return true, nil
}
