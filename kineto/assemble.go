package kineto

import (
	"tracelake/internal/freelist"
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
	usual int // rows of a full row group
	bytes int // of distinct strings
}

type assembled struct {
	rows []int32 // empty while the values are those of the first len(vals) rows
	vals []int64
	dict map[string]uint32
	list []string
	ids  []uint32 // batch string -> position in list + 1
	seen []uint32 // which batch an entry of ids belongs to
}

// reserve makes room for n more values; usual is how many there are in the end.
func (a *assembled) reserve(n, usual int) {
	if n += len(a.vals); n > cap(a.vals) {
		a.vals = append(make([]int64, 0, max(n, min(4*cap(a.vals), usual))), a.vals...)
	}
}

// number writes the row numbers of the values so far.
func (a *assembled) number() {
	if n := len(a.vals); cap(a.rows) < n || cap(a.rows) == 0 {
		a.rows = append(make([]int32, 0, cap(a.vals)), a.rows...)
	}
	for r := len(a.rows); r < len(a.vals); r++ {
		a.rows = append(a.rows, int32(r))
	}
}

// addRows adds the row numbers of the values of src, which are about to be
// added, where numbers are needed. n is the number of rows so far.
func (a *assembled) addRows(src *column, n int32) {
	if len(src.rows) == 0 && len(a.rows) == 0 && len(a.vals) == int(n) {
		return
	}
	a.number()
	if need := len(a.rows) + len(src.vals); need > cap(a.rows) {
		a.rows = append(make([]int32, 0, max(need, cap(a.vals))), a.rows...)
	}
	if len(src.rows) == 0 {
		for r := range src.vals {
			a.rows = append(a.rows, n+int32(r))
		}
		return
	}
	for _, r := range src.rows {
		a.rows = append(a.rows, n+r)
	}
}

func newAssembler(tab tableID, rowGroup int) *assembler {
	// The batch that fills a row group is added whole.
	return &assembler{tab: tab, usual: rowGroup + rowGroup/4, spec: &specs[tab], cols: make([]assembled, len(specs[tab].table.Columns))}
}

// adopt takes over the memory of an earlier row group.
func (a *assembler) adopt() {
	if m := memories[a.tab].Get(); m.rows != nil {
		for c := range a.cols {
			a.cols[c].rows, a.cols[c].vals = m.rows[c][:0], m.vals[c][:0]
		}
	}
}

// add appends the rows of a batch. base is the event index of its first
// member, baseNS what is added to recorded times, gen differs between batches.
func (a *assembler) add(t *tableBatch, strs *interner, tab tableID, base, baseNS int64, gen uint32) {
	if a.n == 0 {
		a.adopt()
	}
	for c := range t.cols {
		src, dst := &t.cols[c], &a.cols[c]
		if len(src.vals) == 0 {
			continue
		}
		dst.reserve(len(src.vals), a.usual)
		if c == colOf[tab].start || c == colOf[tab].end {
			a.addTimes(dst, src, baseNS)
			continue
		}
		dst.addRows(src, a.n)
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
	fit := true
	for _, v := range src.vals {
		_, ok := AddBase(v, baseNS)
		fit = fit && ok
	}
	if fit {
		dst.addRows(src, a.n)
		for _, v := range src.vals {
			dst.vals = append(dst.vals, v+baseNS)
		}
		return
	}
	dst.number()
	for i, v := range src.vals {
		s, ok := AddBase(v, baseNS)
		if !ok {
			continue
		}
		r := int32(i)
		if len(src.rows) > 0 {
			r = src.rows[i]
		}
		dst.rows = append(dst.rows, r+a.n)
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
var memories [numTables]freelist.List[*memory]

func init() {
	for t := range memories {
		memories[t].New = func() *memory { return &memory{} }
	}
}

// take returns the collected rows and starts a new row group. done gives the
// memory of the vectors back.
func (a *assembler) take() (rows int, cols []schema.Vector, done func()) {
	cols = make([]schema.Vector, len(a.cols))
	used := &memory{rows: make([][]int32, len(a.cols)), vals: make([][]int64, len(a.cols))}
	for c := range a.cols {
		s := &a.cols[c]
		if len(s.vals) < int(a.n) {
			s.number()
		}
		v := &cols[c]
		v.Rows, v.Vals, v.Dict = s.rows, s.vals, s.list
		if len(s.vals) == int(a.n) {
			v.Rows = nil
		} else if v.Rows == nil {
			v.Rows = []int32{}
		}
		used.rows[c], used.vals[c] = s.rows, s.vals
		s.rows, s.vals, s.list = nil, nil, nil
		clear(s.dict)
		clear(s.seen)
	}
	rows = int(a.n)
	a.n, a.bytes = 0, 0
	return rows, cols, func() { memories[a.tab].Put(used) }
}
