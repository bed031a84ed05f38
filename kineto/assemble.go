package kineto

import (
	"sync"

	"tracelake/schema"
)

// maxGroupText bounds the distinct strings of a row group, in bytes.
const maxGroupText = 64 << 20

// assembler collects rows of a table that is written while the file is read,
// until they fill a row group.
type assembler struct {
	tab   tableID
	spec  *tableSpec
	cols  []assembled
	n     int32
	bytes int // of distinct strings
}

type assembled struct {
	rows []int32
	vals []int64
	dict map[string]uint32
	list []string
	ids  []uint32 // batch string -> position in list + 1
	seen []uint32 // which batch an entry of ids belongs to
}

// reserve makes room for n more values.
func (a *assembled) reserve(n int) {
	if n += len(a.rows); n > cap(a.rows) || n > cap(a.vals) {
		n = max(n, 2*cap(a.rows))
		a.rows = append(make([]int32, 0, n), a.rows...)
		a.vals = append(make([]int64, 0, n), a.vals...)
	}
}

func newAssembler(tab tableID) *assembler {
	a := &assembler{tab: tab, spec: &specs[tab], cols: make([]assembled, len(specs[tab].table.Columns))}
	if m, _ := memories[tab].Get().(*memory); m != nil {
		for c := range a.cols {
			a.cols[c].rows, a.cols[c].vals = m.rows[c][:0], m.vals[c][:0]
		}
	}
	return a
}

// add appends the rows of a batch. base is the event index of its first
// member, baseNS what is added to recorded times, gen differs between batches.
func (a *assembler) add(t *tableBatch, strs *interner, tab tableID, base, baseNS int64, gen uint32) {
	for c := range t.cols {
		src, dst := &t.cols[c], &a.cols[c]
		if len(src.vals) == 0 {
			continue
		}
		dst.reserve(len(src.vals))
		if c == colOf[tab].start || c == colOf[tab].end {
			a.addTimes(dst, src, baseNS)
			continue
		}
		for _, r := range src.rows {
			dst.rows = append(dst.rows, r+a.n)
		}
		switch {
		case c == indexColumn:
			for _, v := range src.vals {
				dst.vals = append(dst.vals, v+base)
			}
		case a.spec.table.Columns[c].Type == schema.String:
			a.addStrings(dst, src, strs, gen)
		default:
			dst.vals = append(dst.vals, src.vals...)
		}
	}
	a.n += t.n
}

// addTimes adds the base; times that leave the range of int64 become null.
func (a *assembler) addTimes(dst *assembled, src *column, baseNS int64) {
	for i, v := range src.vals {
		s, ok := AddBase(v, baseNS)
		if !ok {
			continue
		}
		dst.rows = append(dst.rows, src.rows[i]+a.n)
		dst.vals = append(dst.vals, s)
	}
}

func (a *assembler) addStrings(dst *assembled, src *column, strs *interner, gen uint32) {
	if n := strs.len(); len(dst.ids) < n {
		dst.ids = append(dst.ids, make([]uint32, n-len(dst.ids))...)
		dst.seen = append(dst.seen, make([]uint32, n-len(dst.seen))...)
	}
	if dst.dict == nil {
		dst.dict = map[string]uint32{}
	}
	for _, v := range src.vals {
		if dst.seen[v] != gen {
			dst.seen[v] = gen
			b := strs.at(uint32(v))
			id, ok := dst.dict[string(b)]
			if !ok {
				s := string(b)
				id = uint32(len(dst.list))
				dst.dict[s] = id
				dst.list = append(dst.list, s)
				a.bytes += len(s)
			}
			dst.ids[v] = id
		}
		dst.vals = append(dst.vals, int64(dst.ids[v]))
	}
}

// memory is what the columns of a row group take. It goes round between
// assemblers and the receivers of row groups.
type memory struct {
	rows [][]int32
	vals [][]int64
}

// memories is per table: columns of one table fill alike.
var memories [numTables]sync.Pool

// take returns the collected rows and starts a new row group. done gives the
// memory of the vectors back.
func (a *assembler) take() (rows int, cols []schema.Vector, done func()) {
	cols = make([]schema.Vector, len(a.cols))
	used := &memory{rows: make([][]int32, len(a.cols)), vals: make([][]int64, len(a.cols))}
	next, _ := memories[a.tab].Get().(*memory)
	for c := range a.cols {
		s := &a.cols[c]
		v := &cols[c]
		v.Rows, v.Vals, v.Dict = s.rows, s.vals, s.list
		if len(s.rows) == int(a.n) {
			v.Rows = nil
		}
		used.rows[c], used.vals[c] = s.rows, s.vals
		s.rows, s.vals, s.list = nil, nil, nil
		if next != nil {
			s.rows, s.vals = next.rows[c][:0], next.vals[c][:0]
		}
		clear(s.dict)
		clear(s.seen)
	}
	rows = int(a.n)
	a.n, a.bytes = 0, 0
	return rows, cols, func() { memories[a.tab].Put(used) }
}
