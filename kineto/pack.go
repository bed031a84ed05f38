package kineto

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"tracelake/internal/aside"
	"tracelake/schema"
)

// Retained holds the rows of a table that stays in memory until the end of a
// file, in source order. Values are packed to the bytes that their range
// needs, so that a row costs tens of bytes and not hundreds.
type Retained struct {
	Table *schema.Table
	n     int
	segs  [][]segment // by column
	names *interner   // strings of all retained tables of the file

	spill *aside.File
	after int    // how many bytes of packed values may be in memory
	held  int    // how many are
	first int    // segments of each column before this one are in the file
	buf   []byte // for what goes there
}

// segment holds the values of one column from one batch.
type segment struct {
	rows    int32
	count   int32    // values
	present []uint64 // bit per row; nil where every row has a value
	none    bool     // no row has a value
	min     int64
	width   uint8  // bytes per value: 0, 1, 2, 4 or 8
	data    []byte // nil where they are in a file
	at      int64  // their place in the file
}

// size returns the bytes that the values take.
func (s *segment) size() int { return int(s.count) * int(s.width) }

// Len returns the number of rows.
func (r *Retained) Len() int { return r.n }

// Name returns a string by the number that a String column has for it.
func (r *Retained) Name(id int64) string { return string(r.names.at(uint32(id))) }

// NumNames returns how many strings the retained tables of the file share.
func (r *Retained) NumNames() int { return r.names.len() }

// Has reports whether any row has a value in a column.
func (r *Retained) Has(col string) bool {
	for i := range r.segs[r.Table.Col(col)] {
		if !r.segs[r.Table.Col(col)][i].none {
			return true
		}
	}
	return false
}

// Values returns a column by name: an integer, the bits of a float64, or the
// number of a string for Name; schema.Null where a row has no value.
func (r *Retained) Values(col string) []int64 { return r.ValuesAt(r.Table.Col(col)) }

// ValuesAt returns the column at a position.
func (r *Retained) ValuesAt(col int) []int64 { return r.ValuesInto(nil, col) }

// ValuesInto is ValuesAt in the memory of out, where that suffices.
func (r *Retained) ValuesInto(out []int64, col int) []int64 {
	if cap(out) < r.n {
		out = make([]int64, r.n)
	}
	out = out[:r.n]
	segs := r.segs[col]
	at := r.load(out, segs[:r.first])
	for i := range segs[r.first:] {
		s := &segs[r.first+i]
		at += s.unpack(out[at:], s.data)
	}
	return out
}

// Drop frees the memory of all columns.
func (r *Retained) Drop() { r.segs = nil }

func (r *Retained) add(t *tableBatch, base int64, mapping *remap) {
	if t.n == 0 {
		return
	}
	for c := range t.cols {
		col := &t.cols[c]
		vals := col.vals
		switch {
		case c == indexColumn:
			for i := range vals {
				vals[i] += base
			}
		case r.Table.Columns[c].Type == schema.String && !r.isKind(c):
			for i := range vals {
				vals[i] = mapping.to(uint32(vals[i]))
			}
		}
		s := pack(t.n, col.rows, vals)
		r.segs[c] = append(r.segs[c], s)
		r.held += len(s.data)
	}
	r.n += int(t.n)
	r.unload()
}

// isKind reports whether a column holds kinds, which are codes until written.
func (r *Retained) isKind(c int) bool {
	return r.Table == specs[tabGPU].table && c == colOf[tabGPU].kind
}

// remap gives the strings of a batch their numbers in the names of the file.
type remap struct {
	from  *interner
	names *interner
	ids   []int64 // number + 1
}

func (m *remap) reset(from *interner) {
	m.from = from
	n := from.len()
	if cap(m.ids) < n {
		m.ids = make([]int64, n+n/2)
	}
	m.ids = m.ids[:n]
	clear(m.ids)
}

func (m *remap) to(id uint32) int64 {
	if v := m.ids[id]; v != 0 {
		return v - 1
	}
	n := m.names.put(m.from.at(id))
	m.ids[id] = int64(n) + 1
	return int64(n)
}

func pack(n int32, rows []int32, vals []int64) segment {
	s := segment{rows: n, count: int32(len(vals))}
	if len(vals) == 0 {
		s.none = true
		return s
	}
	if len(vals) != int(n) {
		s.present = make([]uint64, (n+63)/64)
		if len(rows) == 0 { // the first rows
			for r := range vals {
				s.present[r>>6] |= 1 << (r & 63)
			}
		}
		for _, r := range rows {
			s.present[r>>6] |= 1 << (r & 63)
		}
	}
	lo, hi := vals[0], vals[0]
	for _, v := range vals {
		lo, hi = min(lo, v), max(hi, v)
	}
	s.min = lo
	span := uint64(hi) - uint64(lo)
	switch b := bits.Len64(span); {
	case b == 0:
		return s
	case b <= 8:
		s.width = 1
	case b <= 16:
		s.width = 2
	case b <= 32:
		s.width = 4
	default:
		s.width = 8
	}
	s.data = make([]byte, len(vals)*int(s.width))
	switch s.width {
	case 1:
		for i, v := range vals {
			s.data[i] = byte(v - lo)
		}
	case 2:
		for i, v := range vals {
			binary.LittleEndian.PutUint16(s.data[i*2:], uint16(v-lo))
		}
	case 4:
		for i, v := range vals {
			binary.LittleEndian.PutUint32(s.data[i*4:], uint32(v-lo))
		}
	default:
		for i, v := range vals {
			binary.LittleEndian.PutUint64(s.data[i*8:], uint64(v)-uint64(lo))
		}
	}
	return s
}

// value returns a value by its number among the values of a segment.
func (s *segment) value(data []byte, i int) int64 {
	switch s.width {
	case 1:
		return s.min + int64(data[i])
	case 2:
		return s.min + int64(binary.LittleEndian.Uint16(data[i*2:]))
	case 4:
		return s.min + int64(binary.LittleEndian.Uint32(data[i*4:]))
	case 8:
		return int64(uint64(s.min) + binary.LittleEndian.Uint64(data[i*8:]))
	}
	return s.min
}

func (s *segment) unpack(out []int64, data []byte) int {
	n := int(s.rows)
	switch {
	case s.none:
		for i := range n {
			out[i] = schema.Null
		}
	case s.present == nil:
		for i := range n {
			out[i] = s.value(data, i)
		}
	default:
		k := 0
		for i := range n {
			if s.present[i>>6]>>(i&63)&1 == 1 {
				out[i] = s.value(data, k)
				k++
			} else {
				out[i] = schema.Null
			}
		}
	}
	return n
}

// Names returns all strings by number. They share memory with the table.
func (r *Retained) Names() []string {
	out := make([]string, r.names.len())
	for i := range out {
		b := r.names.at(uint32(i))
		out[i] = unsafe.String(unsafe.SliceData(b), len(b))
	}
	return out
}
