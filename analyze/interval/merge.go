package interval

// Merge returns the union of the intervals as a merged list and leaves its
// argument as it is. Touching intervals join and a gap of one unit keeps them
// apart. An interval of no length stays as such unless another one reaches it.
// An interval whose end lies before its start is left out.
func Merge(v []Interval) []Interval {
	out := append([]Interval(nil), v...)
	Sort(out)
	return MergeSorted(out)
}

// MergeSorted is Merge for intervals whose starts ascend. It works in place:
// the result is the beginning of v, whose former content is lost.
func MergeSorted(v []Interval) []Interval {
	n := 0
	for _, x := range v {
		switch {
		case x.End < x.Start:
		case n > 0 && x.Start <= v[n-1].End:
			v[n-1].End = max(v[n-1].End, x.End)
		default:
			v[n] = x
			n++
		}
	}
	return v[:n]
}

// Length returns the summed length of a merged list.
func Length(merged []Interval) (sum int64) {
	for _, x := range merged {
		sum = AddSat(sum, x.Len())
	}
	return sum
}

// BusySorted returns the length of the union of intervals whose starts ascend.
// It allocates nothing and changes nothing.
func BusySorted(v []Interval) (sum int64) {
	var cur Interval
	open := false
	for _, x := range v {
		switch {
		case x.End < x.Start:
		case open && x.Start <= cur.End:
			cur.End = max(cur.End, x.End)
		default:
			sum = AddSat(sum, cur.Len())
			cur, open = x, true
		}
	}
	return AddSat(sum, cur.Len())
}
