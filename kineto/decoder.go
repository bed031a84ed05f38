package kineto

import (
	"math"

	"tracelake/schema"
)

// status says why the decoder stopped.
type status uint8

const (
	stopped   status = iota // at the first member at or behind the stop position
	shortText               // the text ends before the member does
	arrayEnd                // the event array is closed
	tooDeep                 // nested deeper than maxDepth
)

// decoder turns the text of events into a batch. It is used by one goroutine
// at a time; what it learns about the layout of the text it keeps from chunk
// to chunk, and that is only ever a matter of speed.
type decoder struct {
	b     []byte // text, readable for pad bytes behind end
	end   int
	final bool // nothing follows the text
	out   *batch

	rawText *rawTable // escaped or broken strings -> number of the text
	rawJSON *rawTable // values -> number of their compact form
	rawDims *rawTable // lists of three -> position in dims
	dims    [][3]int64
	class   []class // class of a category, by number of its string
	phase   []byte  // phase, by number of its string: the letter, or 0xff

	flags map[uint32]flaw // flaws of strings without backslashes

	states [numStates]transitions
	dyn    []argumentKey
	dynTop map[string]int
	dynArg map[string]int

	pred  [maxSlots]prediction
	guess [1 << 11]valueGuess
	texts [1 << textBits]uint32 // number + 1 of a string by its first bytes

	// The event at hand.
	val      [maxSlots]int64
	set      slotSet
	other    []argument // values without a slot
	odd      slotSet    // slots whose last value stands in other because it did not fit
	anyJSON  bool       // asJSON holds something
	asJSON   slotSet    // text slots whose value was JSON other than a string
	argsSeen int32
	stale    bool  // other may hold what no longer counts
	unsigned int64 // an address beyond int64, as its bits
	start    int   // of the event
	nameID   uint32
	scratch  []byte
	pend     []note // noticed in the event at hand, counted when it is complete
	consts   map[string]uint32
	kcache   [64]kindCount
	mending  bool // the text at hand was mended before
	bound    bound

	otherAt map[argumentKey]int // positions in other of the first otherIn, where they are many
	otherIn int
}

// prediction is what a slot held last.
type prediction struct {
	raw []byte // a string and its closing quote
	id  uint32
	ok  bool

	word, mask uint64 // the first bytes of a number or string, and which of them count
	n          int32  // how many there are of a number
	v          int64  // their value
}

// valueGuess is a value that a slot held for an event of the same name.
type valueGuess struct {
	slot uint32 // slot + 1
	raw  uint32 // number in rawJSON or rawDims
}

// argument is a value without a slot: a key that no column knows, or a value
// that does not fit its column.
type argument struct {
	argumentKey
	args int32  // which args of the event it is of
	slot slot   // slot whose value this is, or -1
	val  uint32 // number of the compact JSON
}

type argumentKey struct {
	key string
	top bool // key of the event itself and not of args
}

func newDecoder() *decoder {
	return &decoder{
		rawText: newRawTable(), rawJSON: newRawTable(), rawDims: newRawTable(),
		flags: map[uint32]flaw{}, dynTop: map[string]int{}, dynArg: map[string]int{},
		consts: map[string]uint32{},
	}
}

// begin makes the decoder ready for a new chunk that decodes into out.
func (d *decoder) begin(b []byte, end int, final bool, out *batch) {
	d.b, d.end, d.final, d.out = b, end, final, out
	d.rawText.reset()
	d.rawJSON.reset()
	d.rawDims.reset()
	d.dims = d.dims[:0]
	d.class, d.phase = d.class[:0], d.phase[:0]
	clear(d.flags)
	clear(d.consts)
	for i := range d.pred {
		d.pred[i].ok = false
	}
	clear(d.guess[:])
	clear(d.texts[:])
	d.bound = bound{}
}

// run decodes members of the event array from i on, which stands where a
// member may begin, until the first member at or behind stop. next is where to
// go on: the first byte of the member that was not decoded, or the byte behind
// the closing bracket.
func (d *decoder) run(i, stop int) (next int, st status) {
	for {
		i = skipSpace(d.b, i, d.end)
		if i >= d.end {
			return i, shortText
		}
		if i >= stop {
			return i, stopped
		}
		switch d.b[i] {
		case '{':
			i, st = d.events(i, stop)
			if st != stopped || i >= stop {
				return i, st
			}
		case ']':
			return i + 1, arrayEnd
		case ',':
			d.out.add(schema.TrailingComma, i, "comma without an event")
			i++
		default:
			s := i
			e := skipValue(d.b, i, d.end)
			switch e {
			case short:
				return s, shortText
			case deep:
				return s, tooDeep
			case bad:
				if i, st = d.setAside(s); st != stopped {
					return i, st
				}
				continue
			}
			i = skipSpace(d.b, e, d.end)
			if i >= d.end {
				return s, shortText
			}
			if d.b[i] != ',' && d.b[i] != ']' {
				if i, st = d.setAside(s); st != stopped {
					return i, st
				}
				continue
			}
			d.out.add(schema.NonObjectEvent, s, "member of the event array is not an object")
			for _, n := range flawsOf(d.b[s:e], s) {
				d.out.add(n.code, int(n.offset), n.message)
			}
			d.out.members++
			if d.b[i] == ',' {
				i++
			}
		}
	}
}

// clear forgets the values of the event at hand.
func (d *decoder) clear() {
	d.set = slotSet{}
	d.keepOther(d.other[:0])
	d.odd, d.argsSeen, d.stale = slotSet{}, 0, false
	d.unsigned = 0
	if d.anyJSON {
		d.anyJSON, d.asJSON = false, slotSet{}
	}
	d.nameID = 0
	d.pend = d.pend[:0]
}

// note remembers something about the event at hand.
func (d *decoder) note(code schema.Code, offset int, message string) {
	d.pend = append(d.pend, note{code: code, offset: int64(offset), message: message})
}

func (d *decoder) noteFlaws(f flaw, offset int) { d.pend = appendFlaws(d.pend, f, offset) }

// events decodes events from the brace at i on, as run does for members. It
// returns stopped at any member that is not an object, too.
func (d *decoder) events(i, stop int) (next int, st status) {
	b, end := d.b, d.end
	d.clear()
	d.start = i
	cur := stateNone
	first, inArgs := true, false
	var kind valueKind
	var g step
	for {
		var key int
		// Try the texts that followed this key before.
		t := (*transition)(nil)
		if cur >= 0 {
			s := &d.states[cur]
			what := uint32(d.val[slotCat])
			// The text that followed last, here and not in match: this is the
			// hottest place of all.
			t = &s.t[s.hint[what%numHints]%maxTransitions]
			if e := i + int(t.n); e >= end || e == i || (load64(b, e-int(t.back))^t.tail)&t.mask != 0 || (load64(b, i)^t.head)&t.headMask != 0 ||
				len(t.mid) > 0 && !t.middle(b, i) {
				t = s.match(b, i, end, what)
			}
		}
		if t != nil {
			if t.flags != 0 {
				if t.flags&stepEmpty != 0 {
					d.enterArgs()
				}
				if t.flags&stepEnds != 0 {
					d.finish()
					d.clear()
					if d.start = i + int(t.open); d.start >= stop {
						return d.start, stopped
					}
				}
				if t.flags&stepArgs != 0 {
					d.enterArgs()
				}
			}
			key, kind = int(t.key), t.kind
			i += int(t.n)
		} else {
			s := i
			g = step{}
			if cur >= 0 {
				inArgs = d.isArg(cur)
			}
			d.generic(&g, i, inArgs, first)
			switch g.res {
			case stepShort:
				return d.start, shortText
			case stepBad:
				return d.repair(i)
			}
			if g.flags&stepEmpty != 0 {
				d.enterArgs()
			}
			if g.flags&stepEnds != 0 || g.res != stepKey {
				d.finish()
				d.clear()
				if g.res == stepArrayEnd {
					return g.next, arrayEnd
				}
				if g.res == stepMember {
					return g.next, stopped
				}
				if d.start = g.open; d.start >= stop {
					return d.start, stopped
				}
			}
			if g.flags&stepArgs != 0 {
				d.enterArgs()
			}
			key, inArgs = g.key, g.inArgs
			kind = kindNone
			if key >= 0 && key < maxSlots {
				kind = slots[key].kind
			}
			i = g.next
			if cur >= 0 && key >= 0 && !first && g.learn {
				d.states[cur].learn(b[s:i], key, g.flags, g.open-s)
			}
			first = false
		}
		cur = key
		e := 0
		if kind == kindInt {
			// Most integers are short: no call for them.
			if u, n := digits8(b, i); n > 0 && n < 8 && isDelim(b[i+n]) && (n == 1 || b[i] != '0') && i+n < end {
				d.val[key] = int64(u)
				d.set.add(key)
				i += n
				continue
			}
			e = d.value(key, kind, i)
		} else if kind == kindText && b[i] == '"' {
			e = d.text(key, i)
		} else if kind == kindWho {
			// Most events are of the same process and thread as the one before.
			if p := &d.pred[key]; (load64(b, i)^p.word)&p.mask == 0 && p.n > 0 && i+int(p.n) < end {
				d.val[key] = p.v
				d.set.add(key)
				d.set.del(key + 1)
				i += int(p.n)
				continue
			}
			e = d.value(key, kind, i)
		} else if kind != kindNone {
			e = d.value(key, kind, i)
		} else {
			e = d.otherValue(key, &g, skipSpace(b, i, end))
		}
		if e < 0 {
			switch e {
			case short:
				return d.start, shortText
			case deep:
				return d.start, tooDeep
			}
			// The general path has skipped the space, a learned text may not have.
			return d.repair(skipSpace(b, i, end))
		}
		i = e
	}
}

// enterArgs notes that the event has args. The last args of an event count.
func (d *decoder) enterArgs() {
	if d.argsSeen > 0 {
		d.set[0] &^= argSlots[0]
		d.set[1] &^= argSlots[1]
		d.stale = true
	}
	d.argsSeen++
}

// value decodes the value of a slot at i and returns its end.
func (d *decoder) value(s slot, kind valueKind, i int) int {
	b := d.b
	switch kind {
	case kindText:
		if b[i] == '"' {
			return d.text(s, i)
		}
	case kindInt:
		if v, e, ok := parseInt(b, i); ok && e < d.end {
			d.val[s] = v
			d.set.add(s)
			return e
		}
	case kindTime:
		if v, e, frac, ok := d.parseMicros(s, i); ok && e < d.end {
			d.val[s] = v
			d.set.add(s)
			d.noteFraction(v, frac)
			return e
		}
	case kindWho:
		p := &d.pred[s]
		if v, e, ok := parseInt(b, i); ok && e < d.end {
			if p.n = 0; e-i < 8 {
				p.word, p.mask, p.n, p.v = load64(b, i), ^uint64(0)>>(56-8*(e-i)), int32(e-i), v
			}
			d.val[s] = v
			d.set.add(s)
			d.set.del(s + 1)
			return e
		}
	case kindFloat:
		if v, e, ok := parseFloat(b, i); ok && e < d.end {
			d.val[s] = floatBits(v)
			d.set.add(s)
			return e
		}
	case kindJSON, kindDims:
		if c := b[i]; c == '[' || c == '{' || c == '"' {
			return d.nested(s, kind, i)
		}
	}
	if isSpace(b[i]) { // where none stood when the text in front was learned
		if i = skipSpace(b, i, d.end); i < d.end {
			return d.value(s, kind, i)
		}
	}
	return d.slowValue(s, i)
}

// parseMicros is the function of that name with a memory: the high digits of
// times seldom change from one event to the next.
func (d *decoder) parseMicros(s slot, i int) (ns int64, e, frac int, ok bool) {
	b := d.b
	p := &d.pred[s]
	w := load64(b, i)
	if w != p.word || p.n != 8 {
		if ns, e, frac, ok = parseMicros(b, i); !ok || s != slotTS {
			return ns, e, frac, ok
		}
		p.n = 0
		if v, n := digits8(b, i); n == 8 && b[i] != '0' {
			p.word, p.n, p.v = w, 8, int64(v)
		}
		return ns, e, frac, ok
	}
	u, n := digits8(b, i+8)
	if n == 8 || b[i+8+n] != '.' {
		return parseMicros(b, i)
	}
	u += uint64(p.v) * pow10[n]
	e = i + 8 + n
	f, k := digits8(b, e+1)
	if k == 0 || k > 3 || !isDelim(b[e+1+k]) || u >= math.MaxInt64/1000 {
		return parseMicros(b, i)
	}
	return int64(u*1000 + f*pow10[3-k]), e + 1 + k, k, true
}

// noteFraction keeps track of how fine the recorded times are.
func (d *decoder) noteFraction(v int64, frac int) {
	if frac == 0 {
		return
	}
	t := &d.out.times
	if !t.fine && v%1000 != 0 {
		t.fine = true
	}
	if frac < 3 && v%1000 != 0 {
		t.shortFraction = true
	}
}
