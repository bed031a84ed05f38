package kineto

import "tracelake/schema"

// step is what stands between the end of one value and the start of the next,
// as the general path reads it.
type step struct {
	res    stepResult
	key    int    // slot, learned key, or one of the constants below
	name   string // of a key without a slot
	top    bool   // the key is one of the event itself
	inArgs bool
	next   int // start of the value, of the next member, or behind the array
	open   int // brace of the next event, with stepEnds
	flags  uint8
	learn  bool // the text may be remembered
}

type stepResult uint8

const (
	stepKey      stepResult = iota // a key with its value at next
	stepMember                     // the event is complete; a member may begin at next
	stepArrayEnd                   // the event is complete and the array closed before next
	stepShort                      // the text ends before that is known
	stepBad                        // not JSON
)

// Keys without a state.
const (
	keyUnlearned = -2 // an argument key beyond those that are learned
	keyArgs      = -3 // args that are no object
)

// isArg reports whether a slot or learned key is one of args.
func (d *decoder) isArg(key int) bool {
	if key < maxSlots {
		return key >= slotFirstArg
	}
	return !d.dyn[key-maxSlots].top
}

// generic reads from the end of a value, or from the brace of an event, to the
// next value.
func (d *decoder) generic(g *step, i int, inArgs, first bool) {
	b, end := d.b, d.end
	g.learn = !first
	if first {
		i = skipSpace(b, i+1, end)
		if i < end && b[i] != '}' {
			if i = d.key(g, i, false); i < 0 {
				return
			}
		}
	}
	for {
		i = skipSpace(b, i, end)
		if i >= end {
			g.res = stepShort
			return
		}
		switch b[i] {
		case ',':
			i = skipSpace(b, i+1, end)
			if i >= end {
				g.res = stepShort
				return
			}
			if b[i] == '}' || b[i] == ',' {
				d.note(schema.TrailingComma, i, "comma without a key behind it")
				g.learn = false
				continue
			}
		case '}':
			i++
			if inArgs {
				inArgs = false
				continue
			}
			d.afterEvent(g, i)
			return
		default:
			g.res, g.next = stepBad, i
			return
		}
		i = d.key(g, i, inArgs)
		if i < 0 {
			return
		}
		inArgs = false // the args were empty
	}
}

// afterEvent reads what stands behind the brace that closed an event.
func (d *decoder) afterEvent(g *step, i int) {
	b, end := d.b, d.end
	i = skipSpace(b, i, end)
	if i >= end {
		g.res, g.next = stepShort, i
		if d.final {
			g.res = stepMember
		}
		return
	}
	switch b[i] {
	case ']':
		g.res, g.next = stepArrayEnd, i+1
	case '{':
		d.note(schema.MissingComma, i, "no comma between two events")
		g.res, g.next = stepMember, i
	case ',':
		j := skipSpace(b, i+1, end)
		switch {
		case j >= end:
			g.res, g.next = stepShort, j
			if d.final {
				g.res = stepMember
			}
		case b[j] == ']':
			d.note(schema.TrailingComma, i, "comma behind the last event")
			g.res, g.next = stepArrayEnd, j+1
		case b[j] == '{':
			k := skipSpace(b, j+1, end)
			if k < end && b[k] == '"' {
				h := *g
				h.flags, h.open = g.flags|stepEnds, j
				d.key(&h, k, false)
				if h.res == stepKey {
					*g = h
					return
				}
			}
			g.res, g.next = stepMember, j // whatever is wrong is wrong there
		default:
			g.res, g.next = stepMember, j
		}
	default:
		g.res, g.next = stepBad, i
	}
}

// key reads the key at i and finds its value, or the first key of the args
// that begin there. It returns the position behind args that are empty, and -1
// otherwise.
func (d *decoder) key(g *step, i int, inArgs bool) int {
	b, end := d.b, d.end
	for {
		if b[i] != '"' {
			g.res, g.next = stepBad, i
			return -1
		}
		s := i + 1
		q, escaped := stringEnd(b, s, end)
		if q < 0 {
			g.res = stepShort
			return -1
		}
		i = skipSpace(b, q+1, end)
		if i < end && b[i] != ':' {
			g.res, g.next = stepBad, i
			return -1
		}
		i = skipSpace(b, i+1, end)
		if i >= end {
			g.res = stepShort
			return -1
		}
		name := b[s:q]
		if escaped || !clean(name) {
			var f flaw
			if name, f = unescape(nil, name); f != 0 {
				if g.flags&stepEnds != 0 { // the note belongs to the event that begins here
					g.res, g.next = stepBad, i
					return -1
				}
				d.noteFlaws(f, s)
				g.learn = false
			}
		}
		if inArgs || string(name) != "args" {
			d.lookup(g, name, inArgs)
			g.res, g.next, g.inArgs = stepKey, i, inArgs
			return -1
		}
		if b[i] != '{' {
			g.key, g.top = keyArgs, true
			g.res, g.next, g.inArgs, g.learn = stepKey, i, false, false
			return -1
		}
		i = skipSpace(b, i+1, end)
		if i >= end {
			g.res = stepShort
			return -1
		}
		if b[i] == '}' {
			if g.flags&stepEnds != 0 { // too rare to go on from here
				g.res, g.next = stepBad, i
				return -1
			}
			g.flags |= stepEmpty
			return i + 1
		}
		g.flags |= stepArgs
		inArgs = true
	}
}

// lookup finds the slot or learned key of a name.
func (d *decoder) lookup(g *step, name []byte, inArgs bool) {
	known, dyn := topSlot, d.dynTop
	if inArgs {
		known, dyn = argSlot, d.dynArg
	}
	if s, ok := known[string(name)]; ok {
		g.key = s
		return
	}
	g.top = !inArgs
	if k, ok := dyn[string(name)]; ok {
		g.key = maxSlots + k
		return
	}
	g.name = string(name)
	if len(d.dyn) == maxDynamicKeys || len(name) > maxLiteral {
		g.key, g.learn = keyUnlearned, false
		return
	}
	dyn[g.name] = len(d.dyn)
	g.key = maxSlots + len(d.dyn)
	d.dyn = append(d.dyn, argumentKey{g.name, g.top})
}
