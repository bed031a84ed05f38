package lake

import (
	"errors"
	"io/fs"
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

// remove takes a trace out of the lake; one that is gone already is no error.
func (l *Lake) remove(traceID string) error {
	release, err := l.holdTrace(traceID, nil, traceID)
	if err != nil {
		return err
	}
	defer release()
	if err := l.retire(traceID, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
