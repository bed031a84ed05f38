// Package activity groups GPU events into activity records: one per launch,
// device and kind, or one per event.
//
// Group works on the columns of a trace and serves the activities table.
// Capture builds on it and answers what the reference's trace import answers:
// records, capabilities and a summary. All times are integer nanoseconds and
// all sums saturate instead of wrapping.
package activity
