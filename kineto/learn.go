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
	stepEnds uint8 = 1 << iota // the event ends and another begins
	stepArgs                   // args begin (and may end again, being empty)
)

// transition is a remembered text.
type transition struct {
	lit   []byte
	word  uint64 // last eight bytes of lit, or all of a shorter one
	mask  uint64 // which bits of word count
	n     int32
	back  int32 // where word stands, from the end of lit
	open  int32 // position in lit of the brace of the next event
	key   int32
	flags uint8
}

type transitions struct {
	n int
	t [maxTransitions]transition
}

// match returns the transition whose text stands at i, or nil. The end of a
// text tells texts apart: there is the key, while most begin with the same
// white space.
func (s *transitions) match(b []byte, i, end int) *transition {
	for k := 0; k < s.n; k++ {
		t := &s.t[k]
		e := i + int(t.n)
		if e >= end || (load64(b, e-int(t.back))^t.word)&t.mask != 0 {
			continue
		}
		if t.n > 8 && string(b[i:e-8]) != string(t.lit[:t.n-8]) {
			continue
		}
		return t
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
	t.lit = append([]byte(nil), lit...)
	t.n, t.key, t.flags, t.open = int32(len(lit)), int32(key), flags, int32(open)
	var word [8]byte
	t.back = int32(min(len(lit), 8))
	copy(word[:], lit[len(lit)-int(t.back):])
	t.word = load64(word[:], 0)
	t.mask = ^uint64(0) >> (64 - 8*t.back)
}
