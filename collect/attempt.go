package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// place is a tracer's directory with what lies beside it while a job runs:
// attempts are made in a directory of their own and renamed when they are
// complete, so that a killed run leaves the old result or the new one.
type place struct{ dir string }

func (p place) beside(what string) string {
	return filepath.Join(filepath.Dir(p.dir), "."+filepath.Base(p.dir)+"."+what)
}

func (p place) attempt() string { return p.beside("attempt") }
func (p place) old() string     { return p.beside("old") }

// lock makes the parent directory and takes the job for this process; nil means
// that another one has it.
func (p place) lock() (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(p.dir), 0o755); err != nil {
		return nil, err
	}
	return tryLock(p.beside("lock"))
}

// recover cleans up behind a process that was killed here.
func (p place) recover() error {
	if exists(p.old()) {
		if exists(p.dir) {
			if err := os.RemoveAll(p.old()); err != nil {
				return err
			}
		} else if err := os.Rename(p.old(), p.dir); err != nil {
			return err
		}
	}
	return os.RemoveAll(p.attempt())
}

// begin makes an empty attempt.
func (p place) begin() (string, error) {
	if err := os.RemoveAll(p.attempt()); err != nil {
		return "", err
	}
	return p.attempt(), os.Mkdir(p.attempt(), 0o755)
}

// promote makes the attempt the result. What it replaces is removed if it was
// a result, and moved aside if it was something else.
func (p place) promote() error {
	if err := p.aside(); err != nil {
		return err
	}
	if !exists(p.dir) {
		return os.Rename(p.attempt(), p.dir)
	}
	if exchange(p.attempt(), p.dir) == nil {
		return os.RemoveAll(p.attempt())
	}
	if err := os.Rename(p.dir, p.old()); err != nil {
		return err
	}
	if err := os.Rename(p.attempt(), p.dir); err != nil {
		return errors.Join(err, os.Rename(p.old(), p.dir))
	}
	return os.RemoveAll(p.old())
}

// aside moves what is no result of a tracer out of the way.
func (p place) aside() error {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil && !exists(p.dir) {
		return err
	}
	if err == nil {
		if len(entries) == 0 {
			return os.Remove(p.dir)
		}
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == StatusFile || e.Name() == failedFile }) {
			return nil
		}
	}
	for n := 1; n < 1000; n++ {
		to := fmt.Sprintf("%s.replaced-%d", p.dir, n)
		if !exists(to) {
			return os.Rename(p.dir, to)
		}
	}
	return fmt.Errorf("%s is no result of a tracer and in the way", p.dir)
}

// keptLogs is how many logs of earlier attempts stay.
const keptLogs = 5

// carryLogs copies the logs of earlier attempts into the new one.
func (p place) carryLogs(last *Status) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return
	}
	var old []string
	for _, e := range entries {
		if n := e.Name(); e.Type().IsRegular() && strings.HasPrefix(n, "_TRACE_LOG.attempt-") && isOldLog(n) {
			old = append(old, n)
		}
	}
	slices.SortFunc(old, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	if len(old) >= keptLogs {
		old = old[len(old)-keptLogs+1:]
	}
	for _, n := range old {
		_ = copyFile(filepath.Join(p.dir, n), filepath.Join(p.attempt(), n))
	}
	if last != nil && last.Attempt > 0 {
		_ = copyFile(filepath.Join(p.dir, LogFile), filepath.Join(p.attempt(), attemptLog(last.Attempt)))
	}
}

func attemptLog(n int) string { return fmt.Sprintf("_TRACE_LOG.attempt-%d.txt", n) }

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// keep records a failure. A good result stays where it is, with the failure
// told beside it; otherwise the failed attempt takes the place, without the
// files that it did not finish.
func (p place) keep(s *Status, good bool) error {
	log := filepath.Join(p.attempt(), LogFile)
	if good {
		s.Log = ""
		if exists(log) {
			s.Log = failedLog
			if err := copyFile(log, filepath.Join(p.dir, failedLog)); err != nil {
				return err
			}
		}
		return errors.Join(s.write(filepath.Join(p.dir, failedFile)), os.RemoveAll(p.attempt()))
	}
	entries, err := os.ReadDir(p.attempt())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if n := e.Name(); n != LogFile && !isOldLog(n) {
			if err := os.RemoveAll(filepath.Join(p.attempt(), n)); err != nil {
				return err
			}
		}
	}
	if err := s.write(filepath.Join(p.attempt(), StatusFile)); err != nil {
		return err
	}
	return p.promote()
}
