package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"tracelake/analyze/query"
	"tracelake/convert"
	"tracelake/internal/scratch"
	"tracelake/internal/store"
	"tracelake/schema/lake"
)

// lakeOf returns the dataset that a path names: itself, or a temporary one
// with the traces of a file or directory. cleanup removes the latter.
func lakeOf(ctx context.Context, path string, stderr io.Writer) (dir string, cleanup func() error, err error) {
	nothing := func() error { return nil }
	if _, err := lake.Open(path); err == nil {
		return path, nothing, nil
	} else if !errors.Is(err, lake.ErrNotLake) && !errors.Is(err, os.ErrNotExist) {
		if st, statErr := os.Stat(path); statErr != nil || st.IsDir() {
			return "", nothing, errInput("%v", err)
		}
	}
	found, err := convert.DiscoverIn(ctx, []string{path})
	if err != nil {
		return "", nothing, errInput("%s: neither a dataset nor a trace: %v", store.Clean(path), err)
	}
	tmp, err := scratch.New()
	if err != nil {
		return "", nothing, err
	}
	cleanup = tmp.Remove
	sum, err := convert.Run(ctx, found, convert.Options{Output: tmp.Path(), Writer: writer()}, func(r convert.Report) {
		if r.Bad() {
			fmt.Fprintln(stderr, reportLine(&r))
		}
	})
	if err == nil && sum.Done == sum.Rejected {
		err = errInput("%s: no trace could be read", path)
	}
	if err != nil {
		return "", nothing, errors.Join(err, cleanup())
	}
	return tmp.Path(), cleanup, nil
}

// withDataset opens what a path names, as lakeOf does, and sets variables that
// select a part of it.
func withDataset(ctx context.Context, path string, e engineFlags, vars map[string]any, stderr io.Writer, use func(*query.DB) error) (err error) {
	dir, cleanup, err := lakeOf(ctx, path, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	db, err := openLake(ctx, dir, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Select(ctx, vars); err != nil {
		return err
	}
	return use(db)
}
