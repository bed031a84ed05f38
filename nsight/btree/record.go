package btree

import (
	"encoding/binary"
	"math"
	"sync/atomic"
)

// Record is a row as it is stored. It is valid during the callback that gets it.
type Record struct {
	Rowid int64
	page  uint32
	local []byte // the part of the payload that stands on the page, or all of it
	size  int    // of the payload
	next  uint32 // first page with the rest of it
	file  *File
	whole bool
	kinds []uint64 // serial types
	offs  []int    // where values start in the payload
	buf   []byte   // payload put together
	over  []byte   // a page of the rest

	chained *atomic.Int64 // pages of rests that the scan has read

	rowid int // column that stands for the rowid
}

// varint reads a variable-length integer; n is 0 where b ends too early.
func varint(b []byte) (v uint64, n int) {
	for i := 0; i < 8; i++ {
		if i >= len(b) {
			return 0, 0
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	if len(b) < 9 {
		return 0, 0
	}
	return v<<8 | uint64(b[8]), 9
}

// lengthOf returns how many bytes a value of a type takes.
func lengthOf(kind uint64) int {
	if kind < 12 {
		return int([12]uint8{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}[kind])
	}
	return int((kind - 12) / 2)
}

// lengths holds the lengths of the types that one byte names.
var lengths = func() (t [128]uint8) {
	for k := range t {
		t[k] = uint8(lengthOf(uint64(k)))
	}
	return t
}()

// parse reads the header of the record.
func (r *Record) parse(t *Table) error {
	r.rowid = t.rowid
	header, k := varint(r.local)
	if k == 0 || header > uint64(r.size) || header < uint64(k) {
		return corrupt(r.page, "a record header of %d bytes in a record of %d", header, r.size)
	}
	if header > uint64(len(r.local)) {
		if err := r.gather(); err != nil {
			return err
		}
	}
	if n := len(t.Columns); cap(r.kinds) < n {
		r.kinds, r.offs = make([]uint64, n), make([]int, n)
	}
	kinds, offs := r.kinds[:len(t.Columns)], r.offs[:len(t.Columns)]
	at, col := int(header), 0
	b := r.local[:header]
	for k < len(b) {
		if col == len(kinds) {
			return corrupt(r.page, "a record of more than the %d columns of its table", col)
		}
		kind := uint64(b[k])
		if kind < 0x80 {
			k++
			kinds[col], offs[col] = kind, at
			at += int(lengths[kind])
		} else {
			n := 0
			if kind, n = varint(b[k:]); n == 0 {
				return corrupt(r.page, "a record header that ends within a number")
			}
			k += n
			if kind > 2*uint64(r.size)+13 {
				return corrupt(r.page, "a value that is longer than its record")
			}
			kinds[col], offs[col] = kind, at
			at += lengthOf(kind)
		}
		col++
		if at > r.size || kind == 10 || kind == 11 {
			return corrupt(r.page, "values that their record has no room for, or of an unknown type")
		}
	}
	r.kinds, r.offs = kinds[:col], offs[:col]
	if at != r.size {
		return corrupt(r.page, "values of %d bytes in a record of %d", at, r.size)
	}
	return nil
}

// gather puts the payload together from its pages.
func (r *Record) gather() error {
	if r.whole {
		return nil
	}
	if uint64(r.size) > uint64(r.file.pages)*uint64(r.file.usable) {
		return corrupt(r.page, "a record of %d bytes, which is more than the file", r.size)
	}
	r.buf = append(r.buf[:0], r.local...)
	room := r.file.usable - 4
	for next := r.next; len(r.buf) < r.size; {
		if next == 0 {
			return corrupt(r.page, "a record that ends after %d of %d bytes", len(r.buf), r.size)
		}
		// Each belongs to one record. Circles, and rests that many records share,
		// would make of a small file any amount of work.
		if r.chained.Add(1) > int64(r.file.pages) {
			return corrupt(r.page, "a record that shares pages with others, or goes in a circle")
		}
		var err error
		if r.over, err = r.file.read(next, r.over); err != nil {
			return err
		}
		next = binary.BigEndian.Uint32(r.over)
		r.buf = append(r.buf, r.over[4:4+min(room, r.size-len(r.buf))]...)
	}
	r.local, r.whole = r.buf, true
	return nil
}

// Kind is the type of a value.
type Kind uint8

// Kinds of values.
const (
	Null Kind = iota
	Integer
	Float
	Text
	Blob
)

// column returns type, offset and length of a column; a column behind the end
// of a short record is null.
func (r *Record) column(i int) (kind uint64, at, n int) {
	if i >= len(r.kinds) {
		return 0, 0, 0
	}
	kind, at = r.kinds[i], r.offs[i]
	return kind, at, lengthOf(kind)
}

// Kind returns the type of a column.
func (r *Record) Kind(i int) Kind {
	switch kind, _, _ := r.column(i); {
	case kind == 0 && i == r.rowid:
		return Integer
	case kind == 0:
		return Null
	case kind == 7:
		return Float
	case kind < 12:
		return Integer
	case kind&1 == 1:
		return Text
	}
	return Blob
}

// Len returns the length of a text or blob in bytes.
func (r *Record) Len(i int) int {
	_, _, n := r.column(i)
	return n
}

// Bytes returns a text or blob, nil for other types.
func (r *Record) Bytes(i int) ([]byte, error) {
	kind, at, n := r.column(i)
	if kind < 12 {
		return nil, nil
	}
	if at+n > len(r.local) {
		if err := r.gather(); err != nil {
			return nil, err
		}
	}
	return r.local[at : at+n], nil
}

// Int returns an integer; ok is false for other types, and where the value
// stands on another page that cannot be read, which Load tells.
func (r *Record) Int(i int) (v int64, ok bool) {
	if i >= len(r.kinds) {
		return 0, false
	}
	at := r.offs[i]
	b := r.local
	switch r.kinds[i] {
	case 0:
		return r.Rowid, i == r.rowid
	case 1:
		if at < len(b) {
			return int64(int8(b[at])), true
		}
	case 2:
		if at+2 <= len(b) {
			return int64(int16(binary.BigEndian.Uint16(b[at:]))), true
		}
	case 3:
		if at+3 <= len(b) {
			return int64(int8(b[at]))<<16 | int64(b[at+1])<<8 | int64(b[at+2]), true
		}
	case 4:
		if at+4 <= len(b) {
			return int64(int32(binary.BigEndian.Uint32(b[at:]))), true
		}
	case 5:
		if at+6 <= len(b) {
			return int64(int16(binary.BigEndian.Uint16(b[at:])))<<32 | int64(binary.BigEndian.Uint32(b[at+2:])), true
		}
	case 6:
		if at+8 <= len(b) {
			return int64(binary.BigEndian.Uint64(b[at:])), true
		}
	case 8:
		return 0, true
	case 9:
		return 1, true
	}
	return 0, false
}

// Load makes sure that a number can be read.
func (r *Record) Load(i int) error {
	if kind, at, n := r.column(i); kind < 12 && at+n > len(r.local) {
		return r.gather()
	}
	return nil
}

// Float returns a floating-point value, 0 for other types.
func (r *Record) Float(i int) float64 {
	kind, at, _ := r.column(i)
	if kind != 7 || at+8 > len(r.local) {
		return 0
	}
	return math.Float64frombits(binary.BigEndian.Uint64(r.local[at:]))
}

// Default reports whether a column may have a value that a record does not
// hold, but the schema.
func (t *Table) Default(i int) bool { return t.defaults[i] }
