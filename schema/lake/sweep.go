package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"tracelake/internal/filelock"
	"tracelake/schema"
)

const lockSuffix = ".lock"

// hostName is the part of a temporary name that tells whose locks can be
// trusted: a lock may be invisible to another machine on a shared file system.
func hostName() string {
	h, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return RunSlug(h)
}

// Swept counts what Sweep removed.
type Swept struct {
	Transactions int   `json:"transactions"` // directories of dead writers
	Parts        int   `json:"parts"`        // parts that no commit names
	Bytes        int64 `json:"bytes"`        // freed
}

// sweeping is a sweep under way.
type sweeping struct {
	Swept
	left []error // why something could not be removed
}

// remove removes a file, which may be gone already.
func (s *sweeping) remove(remove func(string) error, path string) bool {
	err := remove(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.left = append(s.left, fmt.Errorf("lake: %w", err))
	}
	return err == nil
}

// Sweep removes what dead writers left. A transaction goes at once where its
// writer ran on this machine and is dead, otherwise when nothing in it changed
// for the given time. Parts that no commit names go when they are older than
// that time, which must be longer than any import takes to commit. What cannot
// be removed is an error when all the rest is gone; so is a damaged commit, which
// may name any part.
func (l *Lake) Sweep(olderThan time.Duration) (Swept, error) {
	s, err := l.sweep(olderThan)
	if err == nil && !l.Remote() { // where it was done before
		err = l.Clean(context.Background())
	}
	return s.Swept, errors.Join(append(s.left, err)...)
}

func (l *Lake) sweep(olderThan time.Duration) (s sweeping, err error) {
	if l.writer == "" {
		return s, errors.New("lake: opened for reading")
	}
	limit := time.Now().Add(-olderThan)
	if o := l.remote(); o != nil {
		err := o.sweep(l, &s.Swept, limit)
		return s, err
	}
	// A change that is half done may need what a dead writer left.
	layout, err := l.apart(nil)
	if err != nil {
		return s, err
	}
	defer layout.Close()
	err = l.sweepTransactions(&s, limit)
	for _, dir := range []string{l.meta(), l.meta(commitsDir)} {
		sweepFiles(&s, dir, limit)
	}
	return s, errors.Join(err, l.sweepParts(&s, limit))
}

// Tidy is Sweep where that is cheap. In an object store it would have to list
// everything. What cannot be removed stays for the next time, and so do parts
// where a commit is damaged.
func (l *Lake) Tidy(olderThan time.Duration) error {
	if l.Remote() {
		return nil
	}
	_, err := l.sweep(olderThan)
	if OnlyDamaged(err) {
		return nil
	}
	return err
}

func (l *Lake) sweepTransactions(s *sweeping, limit time.Time) error {
	entries, err := os.ReadDir(l.meta())
	if err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		dir := l.meta(e.Name())
		lock, err := filelock.Acquire(dir+lockSuffix, filelock.Try)
		if errors.Is(err, filelock.ErrLocked) {
			continue // its writer lives
		}
		if err != nil {
			s.left = append(s.left, fmt.Errorf("lake: %w", err))
			continue
		}
		size, newest := measure(dir)
		if filelock.Have && ofThisHost(e.Name()) || newest.Before(limit) {
			if s.remove(os.RemoveAll, dir) {
				s.Transactions++
				s.Bytes += size
			}
			filelock.Release(lock)
			continue
		}
		lock.Close()
	}
	return nil
}

var randomPattern = regexp.MustCompile(`^[0-9a-f]{12}$`)

// ofThisHost reports whether the directory of a transaction was made on this
// machine. The name of another host may begin like that of this one.
func ofThisHost(name string) bool {
	random, ok := strings.CutPrefix(name, tempPrefix+hostName()+"-")
	return ok && randomPattern.MatchString(random)
}

// measure returns the size of a directory and its latest change.
func measure(dir string) (size int64, newest time.Time) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil {
			if !e.IsDir() {
				size += info.Size()
			}
			if info.ModTime().After(newest) {
				newest = info.ModTime()
			}
		}
		return nil
	})
	return size, newest
}

// sweepFiles removes old temporary files: locks that nobody holds, and small
// files whose writer died before it gave them their name.
func sweepFiles(s *sweeping, dir string, limit time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.left = append(s.left, fmt.Errorf("lake: %w", err))
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), tempPrefix) || !info.ModTime().Before(limit) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(e.Name(), lockSuffix) {
			s.remove(os.Remove, path)
			continue
		}
		if _, err := os.Stat(strings.TrimSuffix(path, lockSuffix)); err == nil {
			continue // goes with its directory
		}
		if lock, err := filelock.Acquire(path, filelock.Try); err == nil {
			filelock.Release(lock)
		}
	}
}

func (l *Lake) sweepParts(s *sweeping, limit time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A commit that cannot be read may name any part: then all of them stay.
	if err := l.refresh(); err != nil {
		return err
	}
	live := l.pathsOfCommits()
	tables, err := l.tableDirs()
	if err != nil {
		return err
	}
	for _, dir := range tables {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && e.IsDir() && hidden(e.Name()) {
				return filepath.SkipDir
			}
			if err != nil || e.IsDir() || !partPattern.MatchString(e.Name()) {
				return err
			}
			rel, err := filepath.Rel(l.root, path)
			if err != nil || live[rel] {
				return err
			}
			info, err := e.Info()
			if err != nil || !info.ModTime().Before(limit) {
				return nil
			}
			if s.remove(os.Remove, path) {
				s.Parts++
				s.Bytes += info.Size()
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("lake: %w", err)
		}
	}
	return nil
}

// tableDirs returns the directories that hold parts.
func (l *Lake) tableDirs() (dirs []string, err error) {
	for _, t := range schema.Tables {
		dirs = append(dirs, filepath.Join(l.root, t.Name))
	}
	entries, err := os.ReadDir(l.root)
	if err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && schema.IsUserTable(e.Name()) {
			dirs = append(dirs, filepath.Join(l.root, e.Name()))
		}
	}
	return dirs, nil
}
