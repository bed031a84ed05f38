package nsight

import "encoding/binary"

// Arrow describes its messages in flatbuffers: tables whose fields, and vectors
// whose elements, are found by offsets. The library follows them without a
// look at lengths and takes memory for as many elements as a vector states, so
// they are checked here first.

// flat is a flatbuffer that is checked.
type flat struct {
	b    []byte
	left int // tables that may still be visited: offsets can lead to one table again and again
}

// flatTable is a table of a flatbuffer. The zero value has no fields.
type flatTable struct {
	f            *flat
	at           int64
	vtable, size int64
}

func newFlat(b []byte) *flat { return &flat{b: b, left: len(b) / 4} }

func (f *flat) u16(at int64) int64 { return int64(binary.LittleEndian.Uint16(f.b[at:])) }
func (f *flat) u32(at int64) int64 { return int64(binary.LittleEndian.Uint32(f.b[at:])) }

// has reports whether n bytes stand at a position.
func (f *flat) has(at, n int64) bool { return at >= 0 && n >= 0 && at <= int64(len(f.b))-n }

// table returns the table at a position.
func (f *flat) table(at int64) (t flatTable, ok bool) {
	if f.left--; f.left < 0 || !f.has(at, 4) {
		return t, false
	}
	vtable := at - int64(int32(binary.LittleEndian.Uint32(f.b[at:])))
	if !f.has(vtable, 4) {
		return t, false
	}
	size := f.u16(vtable)
	return flatTable{f, at, vtable, size}, size >= 4 && f.has(vtable, size)
}

// root returns the table that the buffer is about.
func (f *flat) root() (t flatTable, ok bool) {
	if !f.has(0, 4) {
		return t, false
	}
	return f.table(f.u32(0))
}

// field returns where a field of so many bytes stands, 0 where it is absent.
func (t flatTable) field(i, bytes int64) (at int64, ok bool) {
	if 4+2*i+2 > t.size {
		return 0, true
	}
	off := t.f.u16(t.vtable + 4 + 2*i)
	if off == 0 {
		return 0, true
	}
	return t.at + off, t.f.has(t.at+off, bytes)
}

// follow returns where the offset in a field leads, 0 where it is absent.
func (t flatTable) follow(i int64) (at int64, ok bool) {
	at, ok = t.field(i, 4)
	if !ok || at == 0 {
		return 0, ok
	}
	return at + t.f.u32(at), true
}

// vector returns where the elements of a vector in a field stand, and how many.
func (t flatTable) vector(i, bytes int64) (at, n int64, ok bool) {
	at, ok = t.follow(i)
	if !ok || at == 0 {
		return 0, 0, ok
	}
	if !t.f.has(at, 4) {
		return 0, 0, false
	}
	n = t.f.u32(at)
	return at + 4, n, t.f.has(at+4, n*bytes)
}

// tables checks every table of a vector in a field.
func (t flatTable) tables(i int64, check func(flatTable) bool) bool {
	at, n, ok := t.vector(i, 4)
	for k := int64(0); ok && k < n; k++ {
		var e flatTable
		p := at + 4*k
		if e, ok = t.f.table(p + t.f.u32(p)); ok {
			ok = check(e)
		}
	}
	return ok
}

// one checks the table in a field, where there is one.
func (t flatTable) one(i int64, check func(flatTable) bool) bool {
	at, ok := t.follow(i)
	if !ok || at == 0 {
		return ok
	}
	e, ok := t.f.table(at)
	return ok && check(e)
}

// vectors checks that vectors in fields, given with the size of an element, lie
// within the buffer.
func (t flatTable) vectors(fields ...[2]int64) bool {
	for _, f := range fields {
		if _, _, ok := t.vector(f[0], f[1]); !ok {
			return false
		}
	}
	return true
}
