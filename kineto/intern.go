package kineto

import (
	"bytes"
	"hash/maphash"
)

// interner gives each distinct byte string of a chunk a number, counted from 0
// in order of first use. Numbers depend only on the text, never on the hash
// seed, which is random so that no file can provoke collisions.
type interner struct {
	seed maphash.Seed
	tab  []uint32 // number + 1, 0 is free
	hash []uint64
	off  []uint32 // off[i]:off[i+1] is string i in buf
	buf  []byte
}

func newInterner() *interner {
	return &interner{seed: maphash.MakeSeed(), tab: make([]uint32, 1<<10), off: make([]uint32, 1, 1<<9)}
}

func (t *interner) len() int { return len(t.hash) }

func (t *interner) at(id uint32) []byte { return t.buf[t.off[id]:t.off[id+1]] }

// find returns the number of b, or the slot and hash for add.
func (t *interner) find(b []byte) (id uint32, slot, h uint64, ok bool) {
	h = maphash.Bytes(t.seed, b)
	mask := uint64(len(t.tab) - 1)
	for k := h & mask; ; k = (k + 1) & mask {
		e := t.tab[k]
		if e == 0 {
			return 0, k, h, false
		}
		if t.hash[e-1] == h && bytes.Equal(t.at(e-1), b) {
			return e - 1, k, h, true
		}
	}
}

// add stores b, which find did not find, in the slot that find gave.
func (t *interner) add(b []byte, slot, h uint64) uint32 {
	id := uint32(len(t.hash))
	t.buf = append(t.buf, b...)
	t.off = append(t.off, uint32(len(t.buf)))
	t.hash = append(t.hash, h)
	t.tab[slot] = id + 1
	if len(t.hash)*2 > len(t.tab) {
		t.grow()
	}
	return id
}

func (t *interner) put(b []byte) uint32 {
	id, slot, h, ok := t.find(b)
	if ok {
		return id
	}
	return t.add(b, slot, h)
}

func (t *interner) grow() {
	t.tab = make([]uint32, len(t.tab)*4)
	mask := uint64(len(t.tab) - 1)
	for i, h := range t.hash {
		k := h & mask
		for t.tab[k] != 0 {
			k = (k + 1) & mask
		}
		t.tab[k] = uint32(i) + 1
	}
}

// reset forgets all strings and keeps the memory, unless it grew out of
// proportion.
func (t *interner) reset() {
	if len(t.tab) > 1<<20 || cap(t.buf) > 64<<20 {
		*t = *newInterner()
		return
	}
	clear(t.tab)
	t.hash, t.off, t.buf = t.hash[:0], t.off[:1], t.buf[:0]
}

// rawTable remembers what raw text (an escaped string, a nested value) became.
type rawTable struct {
	interner
	ref  []uint32 // what the text became, by number of the text
	flag []flaw   // what was wrong with it
}

func newRawTable() *rawTable { return &rawTable{interner: *newInterner()} }

func (t *rawTable) put(b []byte, slot, h uint64, ref uint32, f flaw) {
	t.add(b, slot, h)
	t.ref = append(t.ref, ref)
	t.flag = append(t.flag, f)
}

func (t *rawTable) reset() {
	t.interner.reset()
	t.ref, t.flag = t.ref[:0], t.flag[:0]
}
