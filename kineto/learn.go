package kineto

// Events of one trace repeat the same bytes between values: quotes, commas,
// line ends, keys. A state remembers the texts that followed the value of its
// key, from the end of that value to the start of the next one, and what they
// mean. A text is remembered only after the general path has read it in the
// same state, so it can be recognised by comparing bytes.

// States: one per slot, then one per learned argument key.
const (
	stateNone = -1
	numStates = maxSlots + maxDynamicKeys
)

// Flags of a step from one value to the next.
const (
	stepEmpty uint8 = 1 << iota // args that are empty
	stepEnds                    // then the event ends and another begins
	stepArgs                    // then args begin
)

// transition is a remembered text.
type transition struct {
	tail     uint64 // last eight bytes of the text, or all of a shorter one
	mask     uint64 // which bits of tail count
	head     uint64 // first eight bytes, or all of a shorter one
	headMask uint64 // which bits of head count
	mid      []byte // what stands between head and tail, in whole words
	n        int16
	open     int16 // position in the text of the brace of the next event
	key      int16
	back     uint8     // where tail stands, from the end
	kind     valueKind // how the value behind it is decoded
	flags    uint8
}

type transitions struct {
	n    int
	hint [numHints]uint8 // which one followed last, by what the event is
	t    [maxTransitions]transition
}

const numHints = 16

// at reports whether the text stands at i.
func (t *transition) at(b []byte, i, end int) bool {
	e := i + int(t.n)
	return e < end && (load64(b, e-int(t.back))^t.tail)&t.mask == 0 && (load64(b, i)^t.head)&t.headMask == 0 && t.middle(b, i)
}

func (t *transition) middle(b []byte, i int) bool {
	for k := 0; k < len(t.mid); k += 8 {
		if load64(b, i+8+k) != load64(t.mid, k) {
			return false
		}
	}
	return true
}

// match returns the transition whose text stands at i, or nil. The end of a
// text tells texts apart: there is the key, while most begin with the same
// white space. Events of one kind go on alike, so what matched is noted.
func (s *transitions) match(b []byte, i, end int, what uint32) *transition {
	for k := range s.t[:s.n] {
		if t := &s.t[k]; t.at(b, i, end) {
			s.hint[what%numHints] = uint8(k)
			return t
		}
	}
	return nil
}

// learn remembers a text.
func (s *transitions) learn(lit []byte, key int, flags uint8, open int) {
	if s.n == maxTransitions || len(lit) > maxLiteral || len(lit) == 0 {
		return
	}
	t := &s.t[s.n]
	s.n++
	t.n, t.key, t.flags, t.open = int16(len(lit)), int16(key), flags, int16(open)
	t.kind = kindNone
	if key >= 0 && key < maxSlots {
		t.kind = slots[key].kind
	}
	n := len(lit)
	t.back = uint8(min(n, 8))
	var word [8]byte
	copy(word[:], lit[n-int(t.back):])
	t.tail = load64(word[:], 0)
	t.mask = ^uint64(0) >> (64 - 8*t.back)
	t.head, t.headMask = t.tail, t.mask
	if n > 8 {
		t.head, t.headMask = load64(lit, 0), ^uint64(0)
	}
	for k := 8; k < n-8; k += 8 { // the last word may overlap the tail
		t.mid = append(t.mid, lit[k:k+8]...)
	}
}
