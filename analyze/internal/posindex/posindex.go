// Package posindex finds the position of a row by its key without storing
// keys: an open-addressing table of 32-bit positions into columns that the
// caller keeps. It costs 6 to 12 bytes per key.
package posindex

import "math/rand/v2"

// seed is drawn once per process, so that no input can be made to collide. It
// decides only where a position is stored and never a result.
var seed = [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}

// Table maps keys to positions. The zero value is not usable; call New.
type Table struct {
	slots []int32 // position plus one; 0 is free
	mask  uint64
}

// New returns a table for at most n keys.
func New(n int) *Table {
	size := 8
	for size < n+n/2 {
		size *= 2
	}
	return &Table{slots: make([]int32, size), mask: uint64(size - 1)}
}

// Hash mixes up to three integers of a key. IDs are mostly handed out in turn,
// so 16 neighbouring values of the first one share a cache line of the table;
// everything else about them is mixed.
func Hash(id, b, c int64) uint64 {
	h := mix(uint64(id>>4)*seed[0] + seed[1])
	if b|c != 0 {
		h = mix(h ^ uint64(b)*seed[1])
		h = mix(h + uint64(c)*seed[0])
	}
	return h<<4 | uint64(id&15)
}

func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// Find returns the position whose key equals the wanted one, or -1. Same is
// asked whether the row at a position has that key.
func (t *Table) Find(hash uint64, same func(pos int32) bool) int32 {
	if p := t.slot(hash, same); *p != 0 {
		return *p - 1
	}
	return -1
}

// Put stores a position under a key and returns the one that it replaces, or
// -1 when the key is new.
func (t *Table) Put(hash uint64, pos int32, same func(pos int32) bool) (old int32) {
	p := t.slot(hash, same)
	old, *p = *p-1, pos+1
	return old
}

func (t *Table) slot(hash uint64, same func(pos int32) bool) *int32 {
	for i := hash & t.mask; ; i = (i + 1) & t.mask {
		if p := &t.slots[i]; *p == 0 || same(*p-1) {
			return p
		}
	}
}
