package lake

import (
	"errors"
	"fmt"
	"slices"
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

// DamagedError says that a commit does not say what it should. Its trace counts
// as not imported, and the import of its input writes it anew.
type DamagedError struct {
	Path string
	Err  error
}

// Error names the commit, and the way out.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("lake: %s is damaged (%v): convert the input of this trace again, or remove that file; until then no file of the dataset is merged or removed", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// OnlyDamaged reports whether an error of Commits, Refresh or Sweep says nothing
// but that commits are damaged.
func OnlyDamaged(err error) bool {
	if _, is := err.(*DamagedError); is { //nolint:errorlint // what it wraps does not count
		return true
	}
	all, ok := err.(interface{ Unwrap() []error })
	return ok && !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !OnlyDamaged(err) })
}
