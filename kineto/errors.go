package kineto

import "fmt"

// RejectedError says why an input is not a trace that can be imported.
type RejectedError struct {
	Reason string
	Offset int64 // in the decompressed text; schema.Null where there is none
}

func (e *RejectedError) Error() string {
	if e.Offset > 0 {
		return fmt.Sprintf("%s (at byte %d)", e.Reason, e.Offset)
	}
	return e.Reason
}

func reject(format string, a ...any) error { return &RejectedError{Reason: fmt.Sprintf(format, a...)} }

func rejectAt(off int64, format string, a ...any) error {
	return &RejectedError{Reason: fmt.Sprintf(format, a...), Offset: off}
}
