package main

import (
	"context"

	"tracelake/nsight/reportcopy"
	"tracelake/redact"
)

// redactReport writes the copy of an SQLite export of Nsight Systems.
func redactReport(ctx context.Context, p *redact.Policy, path string, o *redactOptions) error {
	if o.output == "-" {
		return errUsage("redact: a database cannot be written to standard output; name a file")
	}
	return reportcopy.Copy(ctx, p, path, o.output)
}
