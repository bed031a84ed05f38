package columnar

import "slices"

// intSet numbers the distinct values of a column in order of first use.
type intSet struct {
	slots  []intSlot
	stamp  uint32 // slots with another stamp are free, so nothing needs clearing
	values []int64
}

type intSlot struct {
	value int64
	stamp uint32
	index uint32
}

const (
	intSlotBits = 13
	intSlots    = 1 << intSlotBits // four per distinct value
	// maxProbes bounds the time that values chosen to collide can cost: a
	// column that needs more counts as one with too many values.
	maxProbes = 64
)

// index writes to dst the position of each value among the distinct ones and
// returns those, or nil as soon as there are more than limit of them. They are
// valid until the next call.
func (s *intSet) index(dst []uint32, vals []int64, limit int) []int64 {
	if s.slots == nil {
		s.slots = make([]intSlot, intSlots)
	}
	if s.stamp++; s.stamp == 0 {
		clear(s.slots)
		s.stamp = 1
	}
	s.values = s.values[:0]
	slots := s.slots[:intSlots]
	dst = dst[:len(vals)]
	var last int64
	var at uint32
	for i, x := range vals {
		if i > 0 && x == last {
			dst[i] = at
			continue
		}
		h := uint64(x) * 0x9e3779b97f4a7c15 >> (64 - intSlotBits)
		for probes := 0; ; probes++ {
			t := &slots[h%intSlots]
			if t.stamp != s.stamp {
				if len(s.values) == limit || probes > maxProbes {
					return nil
				}
				*t = intSlot{x, s.stamp, uint32(len(s.values))}
				s.values = append(s.values, x)
			}
			if t.value == x {
				at = t.index
				break
			}
			h++
		}
		last = x
		dst[i] = at
	}
	return s.values
}

// stringSet numbers the strings of a dictionary that a column uses. Callers
// pass whole dictionaries, of which a row group may use a part.
type stringSet struct {
	slots []stringSlot // one per string of the dictionary
	used  []int64      // positions in the dictionary in order of first use
	bytes int          // sum of the lengths of the used strings
	pages []stringRange
}

type stringSlot struct {
	page  uint32 // last page that used the string, from 1; 0 where none did
	index uint32
}

func (s *stringSet) reset(n int) {
	for _, c := range s.used {
		s.slots[c] = stringSlot{}
	}
	s.used, s.bytes, s.pages = s.used[:0], 0, s.pages[:0]
	s.slots = slices.Grow(s.slots[:0], n)[:n]
}

// index numbers the strings of one page. It reports false for a position
// outside the dictionary.
func (s *stringSet) index(dst []uint32, codes []int64, dict []string) bool {
	var r stringRange
	stamp := uint32(len(s.pages) + 1)
	slots := s.slots[:len(dict)]
	dst = dst[:len(codes)]
	for i, c := range codes {
		if uint64(c) >= uint64(len(slots)) {
			return false
		}
		t := &slots[c]
		if t.page != stamp {
			if t.page == 0 {
				t.index = uint32(len(s.used))
				s.used = append(s.used, c)
				s.bytes += len(dict[c])
			}
			t.page = stamp
			r.add(dict[c])
		}
		dst[i] = t.index
	}
	s.pages = append(s.pages, r)
	return true
}
