package schema

import "fmt"

// RejectedError says why an input is not a trace that can be imported.
type RejectedError struct {
	Reason string
	Offset int64 // in the text or file; 0 where there is none
}

func (e *RejectedError) Error() string {
	if e.Offset > 0 {
		return fmt.Sprintf("%s (at byte %d)", e.Reason, e.Offset)
	}
	return e.Reason
}
