package interval

// Gaps returns the parts of [lo, hi) that a merged list leaves uncovered, in
// order. Intervals of no length split no gap.
func Gaps(merged []Interval, lo, hi int64) (out []Interval) {
	for _, x := range merged {
		if x.Start >= hi {
			break
		}
		if x.Len() == 0 {
			continue
		}
		if x.Start > lo {
			out = append(out, Interval{lo, x.Start})
		}
		lo = max(lo, x.End)
	}
	if lo < hi {
		out = append(out, Interval{lo, hi})
	}
	return out
}

// Intersect returns the common parts of two merged lists. Parts of no length
// are left out.
func Intersect(a, b []Interval) (out []Interval) {
	walk(a, b, func(x Interval) { out = append(out, x) })
	return out
}

// Overlap returns the length of the common parts of two merged lists.
func Overlap(a, b []Interval) (sum int64) {
	walk(a, b, func(x Interval) { sum = AddSat(sum, x.Len()) })
	return sum
}

func walk(a, b []Interval, common func(Interval)) {
	for len(a) > 0 && len(b) > 0 {
		x := Interval{max(a[0].Start, b[0].Start), min(a[0].End, b[0].End)}
		if x.Start < x.End {
			common(x)
		}
		if a[0].End < b[0].End {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
}
