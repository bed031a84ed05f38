package lake

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"

	"tracelake/schema"
)

// Supersede takes out of the lake what earlier runs of a job left there: every
// trace of the directory with another attempt that is not among those to keep.
// The output of a job that ran again replaced theirs on disk. Also is asked for
// every other trace whether it goes with a trace that goes.
func (l *Lake) Supersede(job Job, keep map[string]bool, also func(goes, other *Commit) bool) (gone []string, err error) {
	commits, err := l.Commits()
	if err != nil {
		return nil, err
	}
	var old []*Commit
	for i := range commits {
		c := &commits[i]
		if c.Job != nil && c.Job.Dir == job.Dir && c.Job.Attempt != job.Attempt && !keep[c.TraceID] {
			old = append(old, c)
		}
	}
	for _, c := range old {
		for i := range commits {
			if other := &commits[i]; other.TraceID != c.TraceID && !keep[other.TraceID] && also(c, other) {
				if err := l.remove(other.TraceID); err != nil {
					return gone, err
				}
			}
		}
		if err := l.remove(c.TraceID); err != nil {
			return gone, err
		}
		gone = append(gone, c.TraceID)
	}
	return gone, nil
}

// Outdate takes out of the lake what files held before they were replaced or
// completed: those of the traces before, by path, that are not among the traces
// that the files hold now. Before must have been asked for when the files were
// read: what another process imported since may be newer. A trace that others are
// twins of stays, since it holds their rows, and is returned as needed; old says
// so of twins whose commits do not name it.
func (l *Lake) Outdate(before map[string][]string, now map[string]map[string]bool, old func(of, twin *Commit) bool) (gone []string, needed []Commit, err error) {
	var ids []string
	for path, held := range before {
		for _, id := range held {
			if len(now[path]) > 0 && !now[path][id] {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	commits, err := l.Commits()
	if err != nil {
		return nil, nil, err
	}
	byID := map[string]*Commit{}
	for i := range commits {
		byID[commits[i].TraceID] = &commits[i]
	}
	// Twins go first, so that what they refer to can follow them.
	after := func(id string) int {
		if byID[id].twin() {
			return 0
		}
		return 1
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(after(a)-after(b), cmp.Compare(a, b)) })
	for _, id := range ids {
		c, outdated := byID[id], false
		if c == nil {
			continue
		}
		for n := range now[c.Source.Path] {
			outdated = outdated || c.outdatedBy(byID[n])
		}
		if !outdated {
			continue
		}
		delete(byID, id)
		holds := false
		for _, other := range byID {
			holds = holds || other.DuplicateOf == id || other.DuplicateOf == "" && other.twin() && old(c, other)
		}
		if holds {
			needed = append(needed, *c)
			continue
		}
		switch err := l.removeAs(id, c); {
		case errors.Is(err, errOther):
		case err != nil:
			return gone, needed, err
		default:
			gone = append(gone, id)
		}
	}
	return gone, needed, nil
}

// twin reports whether another trace has the rows of this one.
func (c *Commit) twin() bool {
	return c != nil && (c.DuplicateOf != "" || c.Diagnostics[string(schema.SameContent)] > 0)
}

// outdatedBy reports whether a later trace of the same path takes the place of
// this one. Other runs are kept apart on purpose, machines may have files of their
// own under one path, and what was rejected has nothing to offer instead.
func (c *Commit) outdatedBy(now *Commit) bool {
	switch {
	case now == nil || now.Source.Path != c.Source.Path:
		return false
	case c.Outcome == OutcomeRejected:
		return true
	case now.Outcome == OutcomeRejected:
		return false
	case c.twin():
		return true
	case c.Job != nil && (now.Job == nil || *now.Job != *c.Job): // Supersede decides
		return false
	}
	return c.Run == now.Run && (c.Rank == nil || now.Rank == nil || *c.Rank == *now.Rank)
}

// errOther means that the commit of a trace is another one than it was.
var errOther = errors.New("lake: imported again meanwhile")

// remove takes a trace out of the lake; one that is gone already is no error.
func (l *Lake) remove(traceID string) error {
	if err := l.removeAs(traceID, nil); !errors.Is(err, errOther) {
		return err
	}
	return nil
}

// removeAs removes a trace unless it is gone or came from another source than a
// commit says, which may be nil: then it fails with errOther.
func (l *Lake) removeAs(traceID string, was *Commit) error {
	release, err := l.holdTrace(traceID, func() error {
		now, err := l.readCommit(traceID)
		if errors.Is(err, fs.ErrNotExist) || err == nil && was != nil && now.Source != was.Source {
			return errOther
		}
		return err
	})
	if err != nil {
		return err
	}
	defer release()
	return l.retire(traceID)
}
