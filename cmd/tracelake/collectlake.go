package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"tracelake/collect"
	"tracelake/convert"
)

// lakeImport imports what jobs of collect leave into a dataset, each as it
// ends. It may be called from several goroutines.
type lakeImport struct {
	mu     sync.Mutex
	imp    *convert.Importer
	log    io.Writer // for people
	seen   map[string]bool
	inputs int
	bad    int
}

// newLakeImport opens the dataset at once, so that a mistake in its path is
// found before hours of work.
func newLakeImport(lake, run string, log io.Writer) (*lakeImport, error) {
	imp, err := convert.Open(convert.Options{Output: lake, Run: run, Writer: writer()})
	return &lakeImport{imp: imp, log: log, seen: map[string]bool{}}, err
}

// finished imports the output of a job that has just succeeded. What is wrong
// with it is printed and does not make the job a failure.
func (l *lakeImport) finished(ctx context.Context, dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[dir] = true
	return l.add(ctx, []string{dir})
}

// rest imports the output of jobs that did not run because it was there.
func (l *lakeImport) rest(ctx context.Context, reports []collect.Report) error {
	var dirs []string
	for _, r := range reports {
		if r.Outcome == collect.Done && !l.seen[r.Dir] {
			dirs = append(dirs, r.Dir)
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	return l.add(ctx, dirs)
}

func (l *lakeImport) add(ctx context.Context, dirs []string) error {
	found, err := convert.Discover(dirs)
	if errors.Is(err, convert.ErrNoInputs) || err == nil && len(found.Inputs) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	sum, err := l.imp.Import(ctx, found, func(r convert.Report) {
		if r.Bad() {
			l.bad++
			fmt.Fprintln(l.log, reportLine(&r))
		}
	})
	l.inputs += sum.Done
	return err
}
