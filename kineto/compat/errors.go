package compat

import "fmt"

// Error is a trace that the reference refuses. Its text is the reference's
// where the reference's is stable.
type Error struct {
	Event int64 // index in traceEvents, or -1
	Msg   string
}

func (e *Error) Error() string {
	if e.Event >= 0 {
		return fmt.Sprintf("traceEvents[%d] is malformed: %s", e.Event, e.Msg)
	}
	return e.Msg
}

func refuse(format string, args ...any) error {
	return &Error{Event: -1, Msg: fmt.Sprintf(format, args...)}
}

// corrupt is a file that is damaged below the level of JSON.
func corrupt(format string, args ...any) error {
	return refuse("truncated or corrupt trace file: "+format, args...)
}
