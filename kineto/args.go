package kineto

import (
	"math"
	"math/bits"
	"strconv"
)

// putSlots stores the values of slots in their columns and the rest as JSON.
func (d *decoder) putSlots(spec *tableSpec, t *tableBatch, row int32) {
	var left slotSet
	rest := len(d.other) > 0
	for w := range d.set {
		for m := d.set[w] &^ spec.special[w]; m != 0; m &= m - 1 {
			s := w<<6 | bits.TrailingZeros64(m)
			if c := spec.slotCol[s]; c >= 0 {
				t.cols[c].put(row, d.val[s])
			} else {
				left.add(s)
				rest = true
			}
		}
	}
	if rest {
		t.cols[spec.col["args_json"]].put(row, int64(d.argsJSON(&left)))
	}
}

// argsJSON returns the number of a JSON object with the values of the given
// slots and the other arguments. Keys of the event itself that have no column
// carry the prefix "event.".
func (d *decoder) argsJSON(left *slotSet) uint32 {
	o := append(d.scratch[:0], '{')
	for w := range left {
		for m := left[w]; m != 0; m &= m - 1 {
			s := w<<6 | bits.TrailingZeros64(m)
			o = appendKey(o, slots[s].name, !slots[s].arg)
			o = d.appendSlot(o, s)
		}
	}
	for _, a := range d.other {
		o = appendKey(o, a.key, a.top)
		o = append(o, d.out.strs.at(a.val)...)
	}
	o = append(o, '}')
	d.scratch = o
	return d.out.strs.put(o)
}

func appendKey(o []byte, key string, top bool) []byte {
	if len(o) > 1 {
		o = append(o, ',')
	}
	if top {
		key = "event." + key
	}
	return append(appendQuoted(o, []byte(key)), ':')
}

func (d *decoder) appendSlot(o []byte, s slot) []byte {
	v := d.val[s]
	switch slots[s].kind {
	case kindInt, kindWho:
		if v < 0 && v == d.unsigned { // there is a column in one table only
			return strconv.AppendUint(o, uint64(v), 10)
		}
		return strconv.AppendInt(o, v, 10)
	case kindFloat:
		return appendFloat(o, math.Float64frombits(uint64(v)))
	case kindText:
		if d.asJSON.has(s) {
			return append(o, d.out.strs.at(uint32(v))...)
		}
		return appendQuoted(o, d.out.strs.at(uint32(v)))
	case kindJSON:
		return append(o, d.out.strs.at(uint32(v))...)
	case kindDims:
		x := d.dims[v]
		o = strconv.AppendInt(append(o, '['), x[0], 10)
		o = strconv.AppendInt(append(o, ','), x[1], 10)
		return append(strconv.AppendInt(append(o, ','), x[2], 10), ']')
	}
	return append(o, "null"...)
}
