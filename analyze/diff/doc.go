// Package diff compares two sides, each of one or several traces: how much
// time do the same kernels and operators take on either, and is the difference
// more than noise?
package diff
