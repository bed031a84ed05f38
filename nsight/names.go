package nsight

import (
	"sort"

	"tracelake/schema"
)

// names numbers the strings of a report that rows hold.
type names struct {
	list  []string
	at    map[string]int64
	bytes int64
}

func newNames() *names { return &names{at: map[string]int64{}} }

func (n *names) put(s string) int64 {
	if i, ok := n.at[s]; ok {
		return i
	}
	i := int64(len(n.list))
	n.at[s] = i
	n.list = append(n.list, s)
	n.bytes += int64(len(s)) + 40
	return i
}

// idSet is a set of string IDs.
type idSet struct {
	bits []uint64
	more map[int64]struct{}
}

func (s *idSet) add(id int64) {
	if id < 0 || id >= maxDense {
		if s.more == nil {
			s.more = map[int64]struct{}{}
		}
		s.more[id] = struct{}{}
		return
	}
	if w := int(id >> 6); w >= len(s.bits) {
		s.bits = append(s.bits, make([]uint64, max(w+1, 2*len(s.bits))-len(s.bits))...)
	}
	s.bits[id>>6] |= 1 << (id & 63)
}

func (s *idSet) has(id int64) bool {
	if id < 0 || id >= maxDense {
		_, ok := s.more[id]
		return ok
	}
	return int(id>>6) < len(s.bits) && s.bits[id>>6]>>(id&63)&1 == 1
}

// all returns the IDs in order.
func (s *idSet) all() (out []int64) {
	for w, b := range s.bits {
		for i := range 64 {
			if b>>i&1 == 1 {
				out = append(out, int64(w)<<6|int64(i))
			}
		}
	}
	n := len(out)
	for id := range s.more {
		out = append(out, id)
	}
	sort.Slice(out[n:], func(i, j int) bool { return out[n+i] < out[n+j] })
	return out
}

// stringTable gives the number of a string by its ID in the report.
type stringTable struct {
	dense []int32 // number + 1
	more  map[int64]int64
}

func (s *stringTable) set(id, number int64) {
	if id < 0 || id >= maxDense || number >= 1<<31-1 {
		if s.more == nil {
			s.more = map[int64]int64{}
		}
		s.more[id] = number
		return
	}
	if int(id) >= len(s.dense) {
		s.dense = append(s.dense, make([]int32, max(int(id)+1, 2*len(s.dense))-len(s.dense))...)
	}
	s.dense[id] = int32(number) + 1
}

// get returns the number of a string, schema.Null where it is unknown.
func (s *stringTable) get(id int64) int64 {
	if id >= 0 && id < int64(len(s.dense)) && s.dense[id] != 0 {
		return int64(s.dense[id]) - 1
	}
	if n, ok := s.more[id]; ok {
		return n
	}
	return schema.Null
}
