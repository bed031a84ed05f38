package convert

// sortRuns returns the rows in the order of their values, unknown ones last and
// equal ones as they stand. Sources write runs that are in order, one per
// thread or stream: these are merged.
func sortRuns(vals []int64) []int32 {
	key := func(v int64) uint64 { return uint64(v) - 1 + 1<<63 } // schema.Null comes last
	rows := make([]int32, len(vals))
	var runs []int // where runs start
	for i := range rows {
		rows[i] = int32(i)
		if i == 0 || key(vals[i]) < key(vals[i-1]) {
			runs = append(runs, i)
		}
	}
	if len(runs) < 2 {
		return rows
	}
	runs = append(runs, len(rows))
	other := make([]int32, len(rows))
	for len(runs) > 2 {
		next := runs[:0:0]
		for r := 0; r+1 < len(runs); r += 2 {
			from, end := runs[r], runs[r+1]
			next = append(next, from)
			if r+2 == len(runs) { // a run without a partner
				copy(other[from:end], rows[from:end])
				break
			}
			a, b, to := rows[from:end], rows[end:runs[r+2]], other[from:runs[r+2]]
			for k := range to {
				if len(b) == 0 || len(a) > 0 && key(vals[a[0]]) <= key(vals[b[0]]) {
					to[k], a = a[0], a[1:]
				} else {
					to[k], b = b[0], b[1:]
				}
			}
		}
		runs = append(next, len(rows))
		rows, other = other, rows
	}
	return rows
}
