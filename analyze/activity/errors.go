package activity

// UsageError is an option that cannot be used: malformed, contradicting
// another one or the trace, or fitting no trace.
type UsageError struct{ Msg string }

func (e *UsageError) Error() string { return e.Msg }

// InvalidError is a trace whose values no record can hold, such as a negative
// start or an empty host name.
type InvalidError struct{ Msg string }

func (e *InvalidError) Error() string { return e.Msg }
