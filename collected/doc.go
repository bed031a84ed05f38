// Package collected reads what jobs of `tracelake collect` leave in a
// directory: the status file, which names model, tracer and mode, and the
// tables that tracers write as JSON lines.
package collected

// Limits on what a file may hold.
const (
	maxStatus  = 16 << 20 // bytes of a status file
	maxHeader  = 1 << 20  // bytes of the first line of a table
	maxColumns = 1000     // columns that a table may declare
	maxLine    = 64 << 20 // bytes of a row
	// MaxGroupText bounds the distinct strings of a row group, in bytes.
	MaxGroupText = 64 << 20
)
