package main

import (
	"context"

	"tracelake/redact"
)

// redactReport writes the copy of an SQLite export of Nsight Systems.
func redactReport(context.Context, *redact.Policy, string, *redactOptions) error {
	return errInput("exports of Nsight Systems are not redacted yet")
}
