package lake

import (
	"errors"
	"fmt"
)

// ErrNotLake means that a directory holds something, but no lake. Typically
// the path of the output was mistyped.
var ErrNotLake = errors.New("not a tracelake dataset")

// ErrNewer means that a lake was written with a later schema version than this
// program knows. Typically another machine has a newer tracelake.
var ErrNewer = errors.New("dataset was written by a newer tracelake")

// ErrFinished means that a transaction was used after Commit or Abort.
var ErrFinished = errors.New("lake: transaction is finished")

// DuplicateError says that the content of a trace is in the lake already.
type DuplicateError struct {
	Existing Commit
}

// Error names the trace and the file that it came from.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("trace %s is in the dataset already, imported from %s", e.Existing.TraceID, e.Existing.Source.Path)
}
