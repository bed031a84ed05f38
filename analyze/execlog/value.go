package execlog

import (
	"encoding/json"
	"sort"
	"strconv"

	"tracelake/schema"
)

// object returns the members of a JSON object, nil for anything else.
func object(raw []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// integer returns an integer; true, false, 1.0 and text are none.
func integer(raw json.RawMessage) schema.Opt[int64] {
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || v == schema.Null {
		return schema.Opt[int64]{}
	}
	return schema.Some(v)
}

// text returns a text that is not empty.
func text(raw json.RawMessage) schema.Opt[string] {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil || s == "" {
		return schema.Opt[string]{}
	}
	return schema.Some(s)
}

// ranges is a set of numbers that mostly follow each other.
type ranges [][2]int64 // first and last, ascending, with gaps between

// add puts a number into the set and reports whether it was not there.
func (r *ranges) add(v int64) bool {
	s := *r
	i := sort.Search(len(s), func(i int) bool { return s[i][1] >= v })
	if i < len(s) && s[i][0] <= v {
		return false
	}
	left, right := i > 0 && s[i-1][1] == v-1, i < len(s) && s[i][0] == v+1
	switch {
	case left && right:
		s[i-1][1] = s[i][1]
		*r = append(s[:i], s[i+1:]...)
	case left:
		s[i-1][1] = v
	case right:
		s[i][0] = v
	default:
		*r = append(s, [2]int64{})
		copy((*r)[i+1:], s[i:])
		(*r)[i] = [2]int64{v, v}
	}
	return true
}
