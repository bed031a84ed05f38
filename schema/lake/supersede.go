package lake

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"

	"tracelake/schema"
)

// Outdated says what of a lake is no longer so.
type Outdated struct {
	// Jobs are the latest attempts of jobs that are in the lake as a whole, and the
	// traces that they left. What other attempts left in the same directory goes,
	// because the output of a job that ran again replaced theirs on disk.
	Jobs map[Job]map[string]bool
	// Before and Now are the traces of files, by path. Those before that are none of
	// what a file holds now go. Before must have been asked for when the files were
	// read: what another process imported since may be newer.
	Before map[string][]string
	Now    map[string]map[string]bool
	// Again reports whether the file of a twin can be imported again, once the trace
	// that has its rows is gone.
	Again func(twin *Commit) bool
	// Old reports whether a trace is a twin of another one, where its commit does not
	// name that.
	Old func(of, twin *Commit) bool
}

// Gone is what Outdate did.
type Gone struct {
	Superseded []string // traces that earlier attempts of jobs left
	Replaced   []string // traces that files held before
	Twins      []Commit // went with one of those that has their rows
	Needed     []Commit // traces that files held before, and stay, because twins need their rows
}

// Outdate takes out of the lake what is outdated. Twins of a trace that goes have
// no rows without it and go, too, even where they are of the latest attempt of a
// job: their files are to be imported again. Where those cannot be, the trace of a
// file stays; that of a job goes, because two attempts would double every join.
func (l *Lake) Outdate(o Outdated) (gone Gone, err error) {
	if !o.likely() {
		return gone, nil
	}
	commits, err := l.Commits()
	if err != nil {
		return gone, err
	}
	byID := map[string]*Commit{}
	for i := range commits {
		byID[commits[i].TraceID] = &commits[i]
	}
	attempt := map[string]Job{} // the latest, by directory
	for job := range o.Jobs {
		attempt[job.Dir] = job
	}
	superseded := map[string]bool{} // false for what files held before
	var ids []string
	for id, c := range byID {
		if c.Job == nil {
			continue
		}
		if now, ok := attempt[c.Job.Dir]; ok && now != *c.Job && !o.Jobs[now][id] {
			superseded[id] = true
			ids = append(ids, id)
		}
	}
	for _, held := range o.Before {
		for _, id := range held {
			c := byID[id]
			if c == nil || superseded[id] || o.Now[c.Source.Path][id] {
				continue
			}
			for n := range o.Now[c.Source.Path] {
				if c.outdatedBy(byID[n]) {
					ids = append(ids, id)
					break
				}
			}
		}
	}
	if len(ids) == 0 {
		return gone, nil
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
		c := byID[id]
		if c == nil { // went as the twin of another
			continue
		}
		delete(byID, id)
		twins := twinsOf(c, byID, o.Old)
		if !superseded[id] && slices.ContainsFunc(twins, func(t *Commit) bool { return !o.Again(t) }) {
			gone.Needed = append(gone.Needed, *c)
			continue
		}
		for _, twin := range twins {
			switch ok, err := l.take(twin); {
			case err != nil:
				return gone, err
			case ok:
				gone.Twins = append(gone.Twins, *twin)
			}
			delete(byID, twin.TraceID)
		}
		switch ok, err := l.take(c); {
		case err != nil:
			return gone, err
		case ok && superseded[id]:
			gone.Superseded = append(gone.Superseded, id)
		case ok:
			gone.Replaced = append(gone.Replaced, id)
		}
	}
	return gone, nil
}

// likely reports whether commits need to be looked at.
func (o *Outdated) likely() bool {
	for path, held := range o.Before {
		now := o.Now[path]
		if len(now) > 0 && slices.ContainsFunc(held, func(id string) bool { return !now[id] }) {
			return true
		}
	}
	return len(o.Jobs) > 0
}

// twinsOf returns the traces whose rows another one has, by ID.
func twinsOf(c *Commit, among map[string]*Commit, old func(of, twin *Commit) bool) (twins []*Commit) {
	for _, other := range among {
		if other.DuplicateOf == c.TraceID || other.DuplicateOf == "" && other.twin() && old(c, other) {
			twins = append(twins, other)
		}
	}
	slices.SortFunc(twins, func(a, b *Commit) int { return cmp.Compare(a.TraceID, b.TraceID) })
	return twins
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
	case c.Job != nil && (now.Job == nil || *now.Job != *c.Job): // its attempts are replaced as a whole
		return false
	}
	return c.Run == now.Run && (c.Rank == nil || now.Rank == nil || *c.Rank == *now.Rank)
}

// errOther means that the commit of a trace is another one than it was.
var errOther = errors.New("lake: imported again meanwhile")

// take removes a trace and reports whether it did: not where it is gone already or
// was imported from another source meanwhile.
func (l *Lake) take(c *Commit) (bool, error) {
	release, err := l.holdTrace(c.TraceID, func() error {
		now, err := l.readCommit(c.TraceID)
		if errors.Is(err, fs.ErrNotExist) || err == nil && now.Source != c.Source {
			return errOther
		}
		return err
	})
	if errors.Is(err, errOther) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer release()
	err = l.retire(c.TraceID)
	return err == nil, err
}
