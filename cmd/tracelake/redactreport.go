package main

import (
	"context"
	"os"

	"tracelake/internal/store"
	"tracelake/nsight"
	"tracelake/nsight/reportcopy"
	"tracelake/redact"
)

// redactReport writes the copy of an export of Nsight Systems, in the form of
// its source.
func redactReport(ctx context.Context, p *redact.Policy, path string, o *redactOptions) error {
	if o.output == "-" {
		return errUsage("redact: an export of Nsight Systems cannot be written to standard output; name a file")
	}
	if store.IsURL(o.output) {
		return errUsage("redact: the copy of an export of Nsight Systems is written here and there: name a file of this machine, and copy it")
	}
	return reportcopy.Copy(ctx, p, path, o.output)
}

// unreadable says why an input that is no text cannot be copied, or nil.
func unreadable(path string, kind nsight.Kind) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return errInput("redact: %v", err)
	case kind == nsight.Report:
		return errInput("redact: %s: only nsys reads this form; export it first (nsys export --type sqlite) and redact the export", path)
	case kind == nsight.None && st.IsDir():
		return errInput("redact: %s: a directory that is no Parquet or Arrow export of Nsight Systems; give a trace, one at a time", path)
	case kind == nsight.None && !st.Mode().IsRegular():
		return errInput("redact: %s: neither a file nor a directory", path)
	}
	return nil
}
