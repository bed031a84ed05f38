// Package slice writes a part of a trace as a Chrome trace, as Kineto writes
// them. What belongs to the part is told by select.sql; the rest of the package
// turns rows back into events, in the order in which the source had them.
package slice
