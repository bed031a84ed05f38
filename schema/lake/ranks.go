package lake

import "slices"

// maxMissing bounds the list of missing ranks, because a trace may state any
// world size.
const maxMissing = 1024

// Ranks tells which ranks of a run are in the lake.
type Ranks struct {
	Traces     map[int64][]string // trace IDs by rank, ascending
	Unknown    []string           // traces without a rank
	WorldSizes map[int64][]string // trace IDs by the world size they state
}

// RanksOf collects the ranks of a run. Rejected inputs do not count.
func (l *Lake) RanksOf(run string) (Ranks, error) {
	r := Ranks{Traces: map[int64][]string{}, WorldSizes: map[int64][]string{}}
	commits, err := l.Commits()
	for _, c := range commits {
		if c.Run != run || c.Outcome == OutcomeRejected {
			continue
		}
		if c.Rank == nil {
			r.Unknown = append(r.Unknown, c.TraceID)
		} else {
			r.Traces[*c.Rank] = append(r.Traces[*c.Rank], c.TraceID)
		}
		if c.WorldSize != nil {
			r.WorldSizes[*c.WorldSize] = append(r.WorldSizes[*c.WorldSize], c.TraceID)
		}
	}
	return r, err
}

// Repeated returns the ranks that more than one trace states, ascending.
func (r *Ranks) Repeated() []int64 {
	var out []int64
	for rank, ids := range r.Traces {
		if len(ids) > 1 {
			out = append(out, rank)
		}
	}
	slices.Sort(out)
	return out
}

// WorldSize returns the largest world size that a trace states; 0 where none
// does.
func (r *Ranks) WorldSize() int64 {
	var most int64
	for n := range r.WorldSizes {
		most = max(most, n)
	}
	return most
}

// Missing returns the first ranks below the world size that no trace has, and
// how many there are in all.
func (r *Ranks) Missing() (first []int64, total int64) {
	world := r.WorldSize()
	total = world
	for rank := range r.Traces {
		if rank >= 0 && rank < world {
			total--
		}
	}
	for rank := int64(0); rank < world && int64(len(first)) < min(total, maxMissing); rank++ {
		if r.Traces[rank] == nil {
			first = append(first, rank)
		}
	}
	return first, total
}
