package lake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tracelake/internal/filelock"
	"tracelake/internal/regular"
)

const (
	layoutLock    = "layout.lock" // never removed: it has several holders at once
	layoutJournal = "layout.json"
)

// change replaces parts of one directory by others that hold the same rows. It
// is the content of the journal while it is carried out.
type change struct {
	Dir    string   `json:"dir"`    // within the lake
	Add    []File   `json:"add"`    // files that take the place of …
	Remove []string `json:"remove"` // … these
	Moves  []move   `json:"moves"`
	Staged string   `json:"staged,omitempty"` // directory within the lake that is swapped with Dir
}

// move says where the rows of a trace are after a change.
type move struct {
	TraceID string `json:"trace_id"`
	From    string `json:"from"` // path within the lake
	To      File   `json:"to"`
}

// holdLayout keeps the parts of all commits where they are until the result is
// closed; only one process can hold it alone, to move them.
func (l *Lake) holdLayout(how filelock.Mode) (*os.File, error) {
	f, err := filelock.Hold(l.meta(layoutLock), how)
	if err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	return f, nil
}

// moveAlone holds the layout alone, with no change left half done.
func (l *Lake) moveAlone() (*os.File, error) {
	lock, err := l.holdLayout(filelock.Wait)
	if err != nil {
		return nil, err
	}
	if err := l.finishChange(); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// settle finishes the change that a dead process left, if there is one.
func (l *Lake) settle() error {
	if l.Remote() {
		return nil
	}
	switch _, err := os.Stat(l.meta(layoutJournal)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("lake: %w", err)
	}
	lock, err := l.moveAlone()
	if err == nil {
		lock.Close()
	}
	return err
}

// holdSettled holds the layout together with others, with no change left half
// done. Whoever held it alone may have died while this process waited, so that
// only who holds it can tell.
func (l *Lake) holdSettled() (*os.File, error) {
	for {
		lock, err := l.holdLayout(filelock.Shared)
		if err != nil {
			return nil, err
		}
		_, err = os.Stat(l.meta(layoutJournal))
		if errors.Is(err, fs.ErrNotExist) {
			return lock, nil
		}
		lock.Close()
		if err != nil {
			return nil, fmt.Errorf("lake: %w", err)
		}
		if err := l.settle(); err != nil {
			return nil, err
		}
	}
}

// apart holds the layout with none of the named traces sharing files with
// others. Where first, asked while the layout is held, returns an error, nothing
// is done; it may be nil.
func (l *Lake) apart(first func() error, traceIDs ...string) (*os.File, error) {
	for {
		lock, err := l.holdSettled()
		if err != nil {
			return nil, err
		}
		if first != nil {
			if err := first(); err != nil {
				lock.Close()
				return nil, err
			}
		}
		id, err := l.together(traceIDs)
		if err == nil && id == "" {
			return lock, nil
		}
		lock.Close()
		if err == nil {
			err = l.detach(id)
		}
		if err != nil {
			return nil, err
		}
	}
}

// together returns the first of some traces that shares files with others, or
// "". A commit that is damaged names no file.
func (l *Lake) together(traceIDs []string) (string, error) {
	for _, id := range traceIDs {
		c, err := l.readCommit(id)
		if err != nil && unreadable(err) {
			return "", fmt.Errorf("lake: %w", err)
		}
		if err != nil {
			continue
		}
		for _, f := range c.Files {
			if shared, err := l.sharesRows(f); err != nil || shared {
				return id, err
			}
		}
	}
	return "", nil
}

// unreadable reports whether the file system did not say what a file holds, or
// whether there is one.
func unreadable(err error) bool {
	var e *fs.PathError
	return errors.As(err, &e) && !errors.Is(err, fs.ErrNotExist)
}

// sharesRows reports whether a file holds rows of other traces that could be
// lost with it. One that is missing or cut off holds none.
func (l *Lake) sharesRows(f File) (bool, error) {
	if !f.Shared {
		return false, nil
	}
	return l.inPlace(f)
}

// inPlace reports whether a file is there in full size.
func (l *Lake) inPlace(f File) (bool, error) {
	st, err := os.Stat(l.Abs(f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lake: %w", err)
	}
	return st.Size() == f.Bytes, nil
}

// carryOut makes a change whose new files stand in a directory of a
// transaction under their final names. The caller holds the layout alone.
// Readers that scan the directory see it before the change or after it.
func (l *Lake) carryOut(c *change, staged string) error {
	dir := l.Abs(c.Dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	for _, e := range entries {
		if slices.Contains(c.Remove, path.Join(c.Dir, e.Name())) || e.IsDir() && hidden(e.Name()) {
			continue
		}
		if !e.Type().IsRegular() {
			return fmt.Errorf("lake: %s: not a file; no place for it beside parts", filepath.Join(dir, e.Name()))
		}
		if err := os.Link(filepath.Join(dir, e.Name()), filepath.Join(staged, e.Name())); err != nil {
			return fmt.Errorf("lake: %w", err)
		}
	}
	if err := syncDir(staged); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	if c.Staged, err = filepath.Rel(l.root, staged); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	if err := writeJSON(l.meta(layoutJournal), c, replaceFile); err != nil {
		return err
	}
	if err := exchange(staged, dir); err != nil {
		// Whether it was swapped is what the directory says, not the error.
		return errors.Join(fmt.Errorf("lake: %s cannot be swapped in one step: %w", dir, err), l.finishChange())
	}
	if err := errors.Join(syncDir(filepath.Dir(dir)), syncDir(filepath.Dir(staged))); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	return l.finishChange()
}

// readChange returns the change of the journal, and whether its directory was
// swapped already; nil without one.
func (l *Lake) readChange() (c *change, swapped bool, err error) {
	if l.Remote() {
		return nil, false, nil
	}
	name := l.meta(layoutJournal)
	data, err := regular.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("lake: %w", err)
	}
	c = &change{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, false, fmt.Errorf("lake: %s: %w", name, err)
	}
	paths := append([]string{}, c.Remove...)
	for _, f := range c.Add {
		paths = append(paths, f.Path)
	}
	for _, m := range c.Moves {
		if !traceIDPattern.MatchString(m.TraceID) {
			return nil, false, fmt.Errorf("lake: %s: trace ID %q", name, m.TraceID)
		}
		paths = append(paths, m.To.Path)
	}
	if c.Staged != "" {
		paths = append(paths, c.Dir)
	}
	for _, p := range paths {
		if !inTables(p) {
			return nil, false, fmt.Errorf("lake: %s: file %q is outside the tables", name, p)
		}
	}
	if c.Staged != "" && (!filepath.IsLocal(c.Staged) || filepath.Clean(c.Staged) != c.Staged || !strings.HasPrefix(c.Staged, filepath.Join(MetaDir, tempPrefix))) {
		return nil, false, fmt.Errorf("lake: %s: directory %q is none of a transaction", name, c.Staged)
	}
	for _, f := range c.Add {
		if there, err := l.inPlace(f); err != nil || !there {
			return c, false, err
		}
	}
	return c, true, nil
}

// finishChange brings the commits in line with a change whose directory was
// swapped, and forgets one whose was not. The caller holds the layout alone.
func (l *Lake) finishChange() error {
	c, swapped, err := l.readChange()
	if err != nil || c == nil {
		return err
	}
	if swapped {
		if err := l.keepHidden(c); err != nil {
			return err
		}
		for _, m := range c.Moves {
			commit, err := l.readCommit(m.TraceID)
			if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*DamagedError)) {
				continue // its rows do not count
			}
			if err != nil {
				return err
			}
			if commit.move(m) {
				if err := l.write(commitPath(m.TraceID), &commit, replaceFile); err != nil {
					return err
				}
			}
		}
	}
	if err := os.Remove(l.meta(layoutJournal)); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	return syncDir(l.meta())
}

// hidden reports whether readers of tables pass over a file or directory, as
// those of Hive do. Other programs keep their lists there, as Delta does in
// _delta_log.
func hidden(name string) bool { return strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") }

// keepHidden brings hidden directories back from where their directory was
// swapped to. Nothing else may have removed them: whoever sweeps waits until no
// change is half done.
func (l *Lake) keepHidden(c *change) error {
	if c.Staged == "" {
		return nil
	}
	from := filepath.Join(l.root, c.Staged)
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("lake: %w", err)
	}
	for _, e := range entries {
		to := filepath.Join(l.Abs(c.Dir), e.Name())
		if _, err := os.Lstat(to); err == nil || !hidden(e.Name()) {
			continue
		}
		if err := os.Rename(filepath.Join(from, e.Name()), to); err != nil {
			return fmt.Errorf("lake: %w", err)
		}
	}
	return syncDir(l.Abs(c.Dir))
}

// move changes the file of one table and reports whether it was there.
func (c *Commit) move(m move) bool {
	for i := range c.Files {
		if c.Files[i].Path == m.From && c.Files[i].Table == m.To.Table {
			c.Files[i] = m.To
			return true
		}
	}
	return false
}
