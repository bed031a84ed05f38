// Package interval computes with half-open time intervals: unions and their
// lengths.
//
// All times are integers of one unit chosen by the caller (nanoseconds in
// tracelake). A merged list is sorted by start, its members are disjoint, and
// no two of them touch. Lengths and sums saturate at the largest int64 instead
// of wrapping, because a hostile trace may hold any time.
package interval
