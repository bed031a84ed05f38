// Package link finds out which call launched a GPU event and which iteration
// that call belongs to.
//
// A GPU event is linked to the call with its correlation ID. The call belongs
// to an iteration when its start lies in spans of exactly one iteration on the
// calling thread, or, where that thread has none, in process-wide spans of
// exactly one iteration of the process. Everything else stays unlinked and
// carries a Reason.
//
// Resolve does this for a whole trace in O((n+m) log n) for any nesting of
// spans and keeps its result in columns of a few bytes per event and call.
package link
