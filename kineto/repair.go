package kineto

import (
	"bytes"

	"tracelake/schema"
)

// repair deals with the event at d.start, which is broken at position at: it
// mends its text where the strings can be told apart, and otherwise sets it
// aside. next is where a member may begin.
func (d *decoder) repair(at int) (next int, st status) {
	start := d.start
	d.clear()
	closed, next, found := d.boundary(start)
	if !found { // not in sight yet, or cut off
		return start, shortText
	}
	within := eventWithin(d.b[start+1 : closed+1])
	if !d.mending && within < 0 && closed+1-start <= maxRepairBytes {
		if text, flaws, ok := mend(d.b, start, closed+1); ok && d.decodeMended(text, start) {
			for _, f := range flaws {
				for _, c := range flawCodes {
					if f&c.f != 0 {
						d.out.add(c.code, start, c.message)
					}
				}
			}
			return next, stopped
		}
	}
	return d.lose(start, at, closed, next, within), stopped
}

// setAside skips the member at i, which is neither an object nor any value.
func (d *decoder) setAside(i int) (next int, st status) {
	d.start = i
	d.clear()
	closed, next, found := d.boundary(i)
	if !found {
		return i, shortText
	}
	return d.lose(i, i, closed, next, eventWithin(d.b[i+1:closed+1])), stopped
}

// lose counts the member from start to closed, which is broken at position at,
// and returns where to go on: at the event within, where there is one (within,
// counted from start+1), because one without an end must not take the next event
// along.
func (d *decoder) lose(start, at, closed, next, within int) int {
	if within >= 0 {
		next = start + 1 + within
		closed = next - 1
	}
	end := closed + 1
	if at >= end {
		at = start // broken by what follows it
	}
	w := d.b[at:min(at+24, end)] // no further: what follows may not be at hand
	d.out.add(schema.BrokenEvent, start, "event set aside: not JSON near "+quoteShort(w))
	d.out.members++
	return next
}

func quoteShort(s []byte) string {
	t, _ := unescape(nil, s)
	return string(appendQuoted(nil, t))
}

// decodeMended decodes the mended text of the event at start.
func (d *decoder) decodeMended(text []byte, start int) bool {
	b, end, final := d.b, d.end, d.final
	notes, members := len(d.out.notes), d.out.members
	n := len(text)
	buf := make([]byte, n+1+pad)
	copy(buf, text)
	buf[n] = ']'
	d.b, d.end, d.final, d.mending = buf, n+1, true, true
	_, st := d.events(0, n+1)
	d.b, d.end, d.final, d.mending = b, end, final, false
	d.clear()
	for i := notes; i < len(d.out.notes); i++ {
		d.out.notes[i].offset = int64(start)
	}
	return st == arrayEnd && d.out.members == members+1
}

// boundary is the function of that name with a memory: events without an end of
// their own share one.
func (d *decoder) boundary(i int) (closed, next int, found bool) {
	k := &d.bound
	if d.mending || !k.found || i < k.from || i > k.closed {
		closed, next, found = boundary(d.b, i, d.end, d.final)
		if d.mending {
			return closed, next, found
		}
		*k = bound{i, closed, next, found}
	}
	return k.closed, k.next, k.found
}

// bound is the end of a broken event, for all positions from from on.
type bound struct {
	from, closed, next int
	found              bool
}

// boundary looks for the end of a broken event that starts at i: a closing
// brace with either another event or the end of the array behind it. closed is
// the position of the brace, next the position of what follows.
func boundary(b []byte, i, end int, final bool) (closed, next int, found bool) {
	work := maxPhaseWork
	for i < end {
		k := bytes.IndexByte(b[i:end], '}')
		if k < 0 {
			return 0, 0, false
		}
		p := i + k
		i = p + 1
		q := skipSpace(b, i, end)
		if q >= end {
			return 0, 0, false
		}
		switch b[q] {
		case ',', '{': // a comma may be missing
			r := q
			if b[q] == ',' {
				r = skipSpace(b, q+1, end)
			}
			if startsEvent(b, r, end) {
				return p, r, true
			}
			if work <= 0 {
				continue
			}
			is, e := holdsPhase(b, r, end)
			switch {
			case is:
				return p, r, true
			case e == short && !final: // told when there is more text
				return 0, 0, false
			case e == short:
				work -= end - r
			case e == deep:
				work -= maxPhaseWork / 64
			default:
				work -= max(e-r, 0)
			}
		case ']':
			r := skipSpace(b, q+1, end)
			if r >= end {
				return p, q, final
			}
			if b[r] == '}' {
				s := skipSpace(b, r+1, end)
				if s >= end {
					return p, q, final
				}
				if c := b[s]; c == ',' || c == '}' || c == ']' {
					continue // a list within the event
				}
				return p, q, true
			}
			if b[r] == ',' && topKeyAt(b, skipSpace(b, r+1, end), end) {
				return p, q, true
			}
		}
	}
	return 0, 0, false
}

// holdsPhase reports whether an object with a phase starts at i, whatever its first
// key is, and where it ends, as skipNested does.
func holdsPhase(b []byte, i, end int) (is bool, e int) {
	if i >= end || b[i] != '{' {
		return false, bad
	}
	e = skipNested(b, i, end)
	return e > 0 && bytes.Contains(b[i:e], []byte(`"ph"`)), e
}

// startsEvent reports whether an object whose first key is one of an event
// starts at i.
func startsEvent(b []byte, i, end int) bool {
	if i >= end || b[i] != '{' {
		return false
	}
	i = skipSpace(b, i+1, end)
	if i >= end || b[i] != '"' {
		return false
	}
	q := bytes.IndexByte(b[i+1:min(end, i+16)], '"')
	if q < 0 {
		return false
	}
	key := b[i+1 : i+1+q]
	if _, ok := topSlot[string(key)]; !ok && string(key) != "args" {
		return false
	}
	i = skipSpace(b, i+q+2, end)
	return i < end && b[i] == ':'
}

// topKeyAt reports whether a key with a colon stands at i.
func topKeyAt(b []byte, i, end int) bool {
	if i >= end || b[i] != '"' {
		return false
	}
	q, _ := stringEnd(b, i+1, end)
	if q < 0 {
		return false
	}
	q = skipSpace(b, q+1, end)
	return q < end && b[q] == ':'
}
