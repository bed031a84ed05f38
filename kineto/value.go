package kineto

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"tracelake/schema"
)

// otherValue decodes the value of a key without a slot.
func (d *decoder) otherValue(key int, g *step, i int) int {
	e := skipValue(d.b, i, d.end)
	if e < 0 {
		return e
	}
	raw := d.b[i:e]
	a := argument{slot: -1}
	switch key {
	case keyArgs:
		d.enterArgs() // the last args count, also when they are none
		if string(raw) == "null" {
			return e
		}
		a.key, a.top = "args", true
	case keyUnlearned:
		a.key, a.top = g.name, g.top
	default:
		a.argumentKey = d.dyn[key-maxSlots]
	}
	a.val = d.json(raw, i)
	d.addOther(a)
	return e
}

// addOther adds an argument; of equal keys the last one counts.
func (d *decoder) addOther(a argument) {
	a.args = d.argsSeen
	if len(d.other) >= manyOthers {
		if d.otherAt == nil {
			d.otherAt = map[argumentKey]int{}
		}
		for ; d.otherIn < len(d.other); d.otherIn++ {
			d.otherAt[d.other[d.otherIn].argumentKey] = d.otherIn
		}
		if k, ok := d.otherAt[a.argumentKey]; ok {
			d.other[k] = a
			return
		}
	} else {
		for k := range d.other {
			if o := &d.other[k]; o.argumentKey == a.argumentKey {
				*o = a
				return
			}
		}
	}
	d.other = append(d.other, a)
}

// manyOthers is how many arguments are looked through one by one.
const manyOthers = 24

// current leaves of the other arguments those that count.
func (d *decoder) current() {
	k := d.other[:0]
	for _, a := range d.other {
		if (a.top && a.key != "args" || a.args == d.argsSeen) && (a.slot < 0 || d.odd.has(a.slot) && !d.has(a.slot)) {
			k = append(k, a)
		}
	}
	d.keepOther(k)
}

// keepOther keeps some of the arguments, whose positions change.
func (d *decoder) keepOther(k []argument) {
	d.other = k
	if d.otherIn > 0 {
		d.otherAt, d.otherIn = nil, 0
	}
}

// json returns the number of the compact form of a value.
func (d *decoder) json(raw []byte, i int) uint32 {
	n, k, h, ok := d.rawJSON.find(raw)
	if !ok {
		t, f := appendCompact(d.scratch[:0], raw)
		d.scratch = t
		id := d.out.strs.put(t)
		d.rawJSON.put(raw, k, h, id, f)
		n = uint32(d.rawJSON.len() - 1)
	}
	if f := d.rawJSON.flag[n]; f != 0 {
		d.noteFlaws(f, i)
	}
	return d.rawJSON.ref[n]
}

// otherSlot keeps a value that does not fit the column of its slot.
func (d *decoder) otherSlot(s slot, i, e int) int {
	d.addOther(argument{argumentKey: argumentKey{slots[s].name, !slots[s].arg}, slot: s, val: d.json(d.b[i:e], i)})
	d.drop(s)
	d.odd.add(s)
	d.stale = true
	return e
}

// drop takes back an earlier value of a slot.
func (d *decoder) drop(s slot) {
	d.set.del(s)
	d.odd.del(s)
	if slots[s].kind == kindWho {
		d.set.del(s + 1)
	}
}

// setJSON keeps JSON that is no string in a slot for text or JSON.
func (d *decoder) setJSON(s slot, id uint32, e int) int {
	d.anyJSON = true
	d.asJSON.add(s)
	return d.setInt(s, int64(id), e)
}

func (d *decoder) setInt(s slot, v int64, e int) int {
	d.val[s] = v
	d.drop(s)
	d.set.add(s)
	return e
}

// slowValue decodes a value of a slot that is not of the form that its kind
// usually has.
func (d *decoder) slowValue(s slot, i int) int {
	b := d.b
	if i >= d.end {
		return short
	}
	e := skipValue(b, i, d.end)
	if e < 0 {
		return e
	}
	kind := slots[s].kind
	if b[i] == '"' {
		t := b[i+1 : e-1]
		if bytes.IndexByte(t, '\\') >= 0 {
			t, _ = unescape(nil, t)
		}
		t = bytes.TrimSpace(t)
		switch kind {
		case kindInt, kindWho:
			if v, ok := intText(t); ok {
				return d.setInt(s, v, e)
			}
			if kind == kindWho {
				d.set.del(s)
				return d.text(s+1, i)
			}
		case kindTime:
			if v, ok := decimalNS(string(t)); ok {
				d.noteTimeText(t, v)
				return d.setInt(s, v, e)
			}
		case kindFloat:
			if f, err := strconv.ParseFloat(string(t), 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
				return d.setInt(s, floatBits(f), e)
			}
		}
		d.note(schema.OddArgument, i, "text where "+slots[s].name+" has a number")
		return d.otherSlot(s, i, e)
	}
	if b[i] == '[' || b[i] == '{' {
		if kind == kindText {
			return d.setJSON(s, d.json(b[i:e], i), e)
		}
		d.note(schema.OddArgument, i, "nested value where "+slots[s].name+" has a plain one")
		return d.otherSlot(s, i, e)
	}
	w := string(b[i:e])
	switch {
	case w == "null":
		d.drop(s)
		return e
	case w == "true", w == "false":
	case w[0] == '-' || w[0] >= '0' && w[0] <= '9':
		if !json.Valid(b[i:e]) {
			break
		}
		switch kind {
		case kindInt, kindWho:
			if v, ok := wholeNumber(w); ok {
				return d.setInt(s, v, e)
			}
			if u, err := strconv.ParseUint(w, 10, 64); err == nil && slots[s].name == "Addr" {
				d.unsigned = int64(u)
				return d.setInt(s, int64(u), e)
			}
		case kindTime:
			if v, ok := decimalNS(w); ok {
				d.noteTimeText(b[i:e], v)
				return d.setInt(s, v, e)
			}
		case kindFloat:
			if f, err := strconv.ParseFloat(w, 64); err == nil {
				return d.setInt(s, floatBits(f), e)
			}
		}
	}
	if kind == kindText || kind == kindJSON {
		if id := d.json(b[i:e], i); json.Valid(b[i:e]) {
			return d.setJSON(s, id, e)
		}
		return d.otherSlot(s, i, e)
	}
	if w == "NaN" || w == "Infinity" || w == "-Infinity" || json.Valid(b[i:e]) {
		d.note(schema.OddArgument, i, w[:min(len(w), 40)]+" does not fit "+slots[s].name)
	}
	return d.otherSlot(s, i, e)
}

// noteTimeText does for unusual forms of times what noteFraction does.
func (d *decoder) noteTimeText(text []byte, v int64) {
	frac := 3 // an exponent tells nothing about padding
	if i := bytes.IndexByte(text, '.'); i >= 0 && !bytes.ContainsAny(text, "eE") {
		frac = len(text) - i - 1
	}
	d.noteFraction(v, frac)
}

// intText reads the text of an integer as a number writer would print it.
func intText(t []byte) (int64, bool) {
	if len(t) == 0 || len(t) > 20 {
		return 0, false
	}
	v, err := strconv.ParseInt(string(t), 10, 64)
	if err != nil || v == schema.Null || v != 0 && strconv.FormatInt(v, 10) != string(t) {
		return 0, false
	}
	return v, v != 0 || len(t) == 1 || string(t) == "-0"
}

// wholeNumber reads a JSON number that is a whole number, also one written
// with a point or an exponent.
func wholeNumber(w string) (int64, bool) {
	if v, err := strconv.ParseInt(w, 10, 64); err == nil {
		return v, v != schema.Null
	}
	neg, mant, exp, ok := splitDecimal(w)
	if !ok {
		return 0, false
	}
	for exp < 0 && len(mant) > 0 && mant[len(mant)-1] == '0' {
		mant, exp = mant[:len(mant)-1], exp+1
	}
	if mant == "" {
		return 0, true
	}
	if exp < 0 || len(mant)+exp > 19 {
		return 0, false
	}
	v, err := strconv.ParseUint(mant, 10, 64)
	for ; exp > 0 && err == nil; exp-- {
		if v > math.MaxInt64/10 {
			return 0, false
		}
		v *= 10
	}
	if err != nil || v > math.MaxInt64 {
		return 0, false
	}
	if neg {
		return -int64(v), true
	}
	return int64(v), true
}
