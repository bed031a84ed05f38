package interval

import (
	"cmp"
	"math"
	"slices"
)

// Interval is the half-open interval [Start, End). An interval of no length
// covers nothing but keeps its place in a merged list.
type Interval struct {
	Start, End int64
}

// Len returns the length of the interval, 0 where the end lies before the start.
func (v Interval) Len() int64 {
	if v.End <= v.Start {
		return 0
	}
	if d := v.End - v.Start; d > 0 {
		return d
	}
	return math.MaxInt64
}

// AddSat adds without wrapping: the sum stays within int64.
func AddSat(a, b int64) int64 {
	s := a + b
	switch {
	case a > 0 && b > 0 && s < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && s >= 0:
		return math.MinInt64
	}
	return s
}

func compare(a, b Interval) int {
	if c := cmp.Compare(a.Start, b.Start); c != 0 {
		return c
	}
	return cmp.Compare(a.End, b.End)
}

// Sort orders intervals by start and then by end.
func Sort(v []Interval) {
	if !slices.IsSortedFunc(v, compare) {
		slices.SortFunc(v, compare)
	}
}
