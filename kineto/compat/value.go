package compat

import "math/big"

// kind is the type of a JSON value.
type kind uint8

const (
	null kind = iota
	boolean
	integer
	float
	text
	array
	object
)

// value is a JSON value the way Python holds it.
type value struct {
	kind kind
	b    bool
	i    int64    // integer within int64
	big  *big.Int // integer beyond, else nil
	f    float64
	s    string // text; surrogates without a partner in three bytes each
	list []value
	obj  []field // distinct keys in order of first use
}

type field struct {
	key string
	val value
}

// get returns the value of a key of an object.
func (v *value) get(key string) (*value, bool) {
	for i := range v.obj {
		if v.obj[i].key == key {
			return &v.obj[i].val, true
		}
	}
	return nil, false
}

// set stores a value under a key, whose last value counts.
func (v *value) set(key string, val value, at map[string]int) map[string]int {
	const few = 16 // objects of more keys need an index
	if len(v.obj) >= few {
		if at == nil {
			at = make(map[string]int, 2*few)
			for i := range v.obj {
				at[v.obj[i].key] = i
			}
		}
		if i, ok := at[key]; ok {
			v.obj[i].val = val
			return at
		}
		at[key] = len(v.obj)
	} else if old, ok := v.get(key); ok {
		*old = val
		return at
	}
	v.obj = append(v.obj, field{key, val})
	return at
}

// truth is Python's: null, false, 0 and everything empty are not true.
func (v *value) truth() bool {
	switch v.kind {
	case boolean:
		return v.b
	case integer:
		return v.big != nil || v.i != 0
	case float:
		return v.f != 0
	case text:
		return v.s != ""
	case array:
		return len(v.list) > 0
	case object:
		return len(v.obj) > 0
	}
	return false
}

// typeName is the name that Python's messages use.
func (v *value) typeName() string {
	return [...]string{"NoneType", "bool", "int", "float", "str", "list", "dict"}[v.kind]
}
