package kineto

import (
	"fmt"

	"tracelake/schema"
)

// RejectedError says why an input is not a trace that can be imported.
type RejectedError = schema.RejectedError

func reject(format string, a ...any) error { return &RejectedError{Reason: fmt.Sprintf(format, a...)} }

func rejectAt(off int64, format string, a ...any) error {
	return &RejectedError{Reason: fmt.Sprintf(format, a...), Offset: off}
}
