package kineto

import (
	"bytes"
	"math"
)

// text decodes the string at i into a slot.
func (d *decoder) text(s slot, i int) int {
	b := d.b
	i++
	p := &d.pred[s]
	if p.ok && (load64(b, i)^p.word)&p.mask == 0 {
		if e := i + len(p.raw); e <= d.end && (len(p.raw) <= 8 || bytes.Equal(b[i+8:e], p.raw[8:])) {
			return d.setText(s, p.id, e-1)
		}
	}
	// A string that began like this before may be the same.
	h := textHash(b, i)
	if g := d.texts[h]; g != 0 {
		want := d.out.strs.at(g - 1)
		if e := i + len(want); e < d.end && b[e] == '"' && bytes.Equal(b[i:e], want) {
			return d.setText(s, g-1, e)
		}
	}
	q, escaped := stringEnd(b, i, d.end)
	if q < 0 {
		return q
	}
	id, f := d.str(b[i:q], escaped)
	if f != 0 {
		d.noteFlaws(f, i)
		p.ok = false
	} else if !escaped && q-i <= 256 {
		p.raw = append(p.raw[:0], b[i:q+1]...)
		p.word, p.mask = load64(b, i), ^uint64(0)>>(64-8*min(8, len(p.raw)))
		p.id, p.ok = id, true
		d.texts[h] = id + 1
	}
	return d.setText(s, id, q)
}

func (d *decoder) setText(s slot, id uint32, quote int) int {
	d.val[s] = int64(id)
	d.set.add(s)
	if s == slotName {
		d.nameID = id
	}
	if d.anyJSON {
		d.asJSON.del(s)
	}
	return quote + 1
}

const textBits = 12

// textHash mixes bytes of a string at i, whose length is not known yet. A few
// bytes behind it may count too, which is only a matter of speed.
func textHash(b []byte, i int) uint32 {
	x := load64(b, i)*0x9E3779B97F4A7C15 ^ load64(b, i+8)*0xC2B2AE3D27D4EB4F
	return uint32(x >> (64 - textBits))
}

// str returns the number of the string whose inside is s.
func (d *decoder) str(s []byte, escaped bool) (id uint32, f flaw) {
	if !escaped {
		id, k, h, ok := d.out.strs.find(s)
		if ok {
			return id, d.flags[id] // no flags at all in a healthy file
		}
		if clean(s) {
			return d.out.strs.add(s, k, h), 0
		}
	}
	n, k, h, ok := d.rawText.find(s)
	if ok {
		return d.rawText.ref[n], d.rawText.flag[n]
	}
	t, f := unescape(d.scratch[:0], s)
	d.scratch = t
	id = d.intern(t)
	d.rawText.put(s, k, h, id, f)
	return id, f
}

// intern returns the number of a text. One with control characters is flagged, for
// where it stands as it is between quotes.
func (d *decoder) intern(t []byte) uint32 {
	id := d.out.strs.put(t)
	if !clean(t) {
		d.flags[id] = flawControl
	}
	return id
}

// nested decodes the value at i, kept as JSON or as three sizes.
func (d *decoder) nested(s slot, kind valueKind, i int) int {
	b := d.b
	raw := d.rawJSON
	dims := kind == kindDims
	if dims {
		raw = d.rawDims
	}
	// Events of one name often repeat the same lists.
	gi := (d.nameID*0x9E3779B1 ^ uint32(s)*0x85EBCA77 ^ uint32(load64(b, i))*0xC2B2AE3D) >> 21
	g := &d.guess[gi]
	if g.slot == uint32(s)+1 {
		want := raw.at(g.raw)
		if e := i + len(want); e < d.end && bytes.Equal(b[i:e], want) && isDelim(b[e]) {
			d.val[s] = int64(raw.ref[g.raw])
			d.set.add(s)
			return e
		}
	}
	e := skipValue(b, i, d.end)
	if e < 0 {
		return e
	}
	n, k, h, ok := raw.find(b[i:e])
	if !ok {
		if dims {
			x, good := threeInts(b[i:e])
			if !good {
				return d.otherSlot(s, i, e)
			}
			d.dims = append(d.dims, x)
			raw.put(b[i:e], k, h, uint32(len(d.dims)-1), 0)
		} else {
			t, f := appendCompact(d.scratch[:0], b[i:e])
			d.scratch = t
			id := d.out.strs.put(t)
			raw.put(b[i:e], k, h, id, f)
		}
		n = uint32(raw.len() - 1)
	}
	if f := raw.flag[n]; f != 0 {
		d.noteFlaws(f, i)
	} else if b[i] != '"' || e-i < 1<<10 {
		*g = valueGuess{uint32(s) + 1, n}
	}
	d.val[s] = int64(raw.ref[n])
	d.set.add(s)
	return e
}

// threeInts reads a list of three integers.
func threeInts(s []byte) (x [3]int64, ok bool) {
	i, k := 1, 0
	if s[0] != '[' {
		return x, false
	}
	for ; k < 3; k++ {
		for i < len(s) && isSpace(s[i]) {
			i++
		}
		neg := i < len(s) && s[i] == '-'
		if neg {
			i++
		}
		v, n := int64(0), 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' && n < 18 {
			v, i, n = v*10+int64(s[i]-'0'), i+1, n+1
		}
		if n == 0 {
			return x, false
		}
		if neg {
			v = -v
		}
		x[k] = v
		for i < len(s) && isSpace(s[i]) {
			i++
		}
		if i >= len(s) || (k < 2 && s[i] != ',') || (k == 2 && s[i] != ']') {
			return x, false
		}
		i++
	}
	return x, i == len(s)
}

// floatBits returns the bits of a float as a column stores them: one zero, so
// that no value looks like schema.Null.
func floatBits(f float64) int64 {
	if f == 0 {
		return 0
	}
	return int64(math.Float64bits(f))
}
