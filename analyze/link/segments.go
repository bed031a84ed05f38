package link

import (
	"cmp"
	"slices"
	"sort"

	"tracelake/schema"
)

// segments is a piecewise-constant function of time for one thread after the
// other: from tick[i] up to tick[i+1], state[i] holds. The last segment of a
// thread is always empty.
type segments struct {
	tick  []int64
	state []int32 // the only active ref, or none or many
	span  []int32 // latest-starting active span where state is a ref, else -1
}

const (
	none int32 = -1
	many int32 = -2
)

// edge is the start or end of a span.
type edge struct {
	tick int64
	span int32
	end  bool
}

// sweep adds the segments of one thread, whose spans are given by position.
// Refs are numbered; ref gives the number of each span and active counts the
// active spans of each ref, all 0 before and after.
func (s *segments) sweep(spans []schema.Span, members []int32, ref, active []int32) {
	edges := make([]edge, 0, 2*len(members))
	for _, m := range members {
		if sp := &spans[m]; sp.Start < sp.End {
			edges = append(edges, edge{sp.Start, m, false}, edge{sp.End, m, true})
		}
	}
	// Among spans that start together the longest comes first, so that the
	// innermost one ends on top of the stack.
	slices.SortFunc(edges, func(a, b edge) int {
		if c := cmp.Compare(a.tick, b.tick); c != 0 {
			return c
		}
		if !a.end && !b.end {
			if c := cmp.Compare(spans[b.span].End, spans[a.span].End); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.span, b.span)
	})
	// While one ref is active, the sum of the distinct active refs is that ref.
	var distinct, sum int64
	var stack []int32
	for i := 0; i < len(edges); {
		now := edges[i].tick
		for ; i < len(edges) && edges[i].tick == now; i++ {
			r := ref[edges[i].span]
			if edges[i].end {
				if active[r]--; active[r] == 0 {
					distinct, sum = distinct-1, sum-int64(r)
				}
				continue
			}
			if active[r]++; active[r] == 1 {
				distinct, sum = distinct+1, sum+int64(r)
			}
			stack = append(stack, edges[i].span)
		}
		for len(stack) > 0 && spans[stack[len(stack)-1]].End <= now {
			stack = stack[:len(stack)-1]
		}
		state, span := none, int32(-1)
		switch {
		case distinct == 1:
			state, span = int32(sum), stack[len(stack)-1]
		case distinct > 1:
			state = many
		}
		s.tick = append(s.tick, now)
		s.state = append(s.state, state)
		s.span = append(s.span, span)
	}
}

// at returns the state at a tick within the segments lo to hi of a thread.
func (s *segments) at(lo, hi int, tick int64) (state, span int32) {
	// The segment wanted is the last one that starts at or before the tick.
	i := lo + sort.Search(hi-lo, func(i int) bool { return s.tick[lo+i] > tick }) - 1
	if i < lo {
		return none, -1
	}
	return s.state[i], s.span[i]
}
