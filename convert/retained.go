package convert

import (
	"slices"
	"sync"

	"tracelake/internal/aside"
	"tracelake/internal/freelist"
	"tracelake/schema"
	"tracelake/schema/columnar"
)

// source gives the values of one column in source order.
type source struct {
	vals []int64 // schema.Null where a row has none
	// Strings: dict holds them by value, or names by value where dict is nil.
	dict  []string
	names bool
	lists func(row int) []schema.Interval // of an Intervals column, instead of vals
}

// retainedTable writes a table that was kept in memory. Columns that the
// reader holds come from rows, which may be nil; computed ones from extra.
type retainedTable struct {
	t     *schema.Table
	rows  rows
	order []int32
	extra map[string]func() source
}

// write encodes the table column by column, so that no more than a few columns
// are unpacked at a time, and appends its row groups.
func (x *retainedTable) write(s *sink, rowGroup int) error {
	if s.tables[x.t.Name] == nil || len(x.order) == 0 {
		return nil
	}
	if s.tables[x.t.Name].arrow != nil {
		return x.writeArrow(s, rowGroup)
	}
	groups := (len(x.order) + rowGroup - 1) / rowGroup
	pool := gatherers
	var away *aside.File
	if groups > manyGroups { // what is large by then must not stay
		pool = newGatherers()
		away = s.aside
	}
	enc := make([][]*columnar.Column, groups)
	for g := range enc {
		enc[g] = make([]*columnar.Column, len(x.t.Columns))
	}
	var wg sync.WaitGroup
	errs := make([]error, len(x.t.Columns))
	// Computed columns share what they are computed from, so they are made one
	// after another; encoding is what takes time.
	for c := range x.t.Columns {
		s.gate <- struct{}{}
		column := func() {
			defer func() { <-s.gate }()
			errs[c] = x.column(s, c, rowGroup, enc, pool, away)
		}
		if s.alone(len(x.order)) {
			column()
		} else {
			wg.Go(column)
		}
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	for g := range enc {
		rows := min(rowGroup, len(x.order)-g*rowGroup)
		chunk, err := columnar.NewChunk(x.t, rows, enc[g])
		if err != nil {
			return err
		}
		enc[g] = nil
		if err := s.chunk(x.t, chunk); err != nil {
			return err
		}
	}
	return nil
}

// writeArrow writes the table as Arrow, whose batches need all columns at
// once.
func (x *retainedTable) writeArrow(s *sink, rowGroup int) error {
	all := make([]gatherer, len(x.t.Columns))
	for c := range all {
		all[c] = gatherer{src: x.source(c, nil), text: x.t.Columns[c].Type == schema.String, rows: x.rows}
	}
	for from := 0; from < len(x.order); from += rowGroup {
		order := x.order[from:min(from+rowGroup, len(x.order))]
		cols := make([]schema.Vector, len(all))
		for c := range all {
			cols[c] = all[c].vector(order)
		}
		if err := s.rowGroup(x.t, len(order), cols, func() {}); err != nil {
			return err
		}
	}
	return nil
}

// source returns where the values of a column come from. buf is memory for
// them.
func (x *retainedTable) source(c int, buf []int64) (src source) {
	name := x.t.Columns[c].Name
	switch f := x.extra[name]; {
	case name == schema.TraceIDColumn:
	case f != nil:
		src = f()
	case x.rows != nil && x.rows.Has(name):
		src = source{vals: x.rows.ValuesInto(buf, c), names: x.t.Columns[c].Type == schema.String}
	}
	return src
}

func (x *retainedTable) column(s *sink, c, rowGroup int, enc [][]*columnar.Column, pool *freelist.List[*gatherer], away *aside.File) error {
	e, put := s.enc.get(x.t)
	defer put()
	g := pool.Get()
	defer pool.Put(g)
	n := min(rowGroup, len(x.order))
	src := x.source(c, g.buf)
	if x.extra[x.t.Columns[c].Name] == nil {
		g.buf = src.vals
	}
	*g = gatherer{buf: g.buf, src: src, text: x.t.Columns[c].Type == schema.String, rows: x.rows, vals: slices.Grow(g.vals[:0], n), at: slices.Grow(g.at[:0], n)}
	for k := range enc {
		from, to := k*rowGroup, min((k+1)*rowGroup, len(x.order))
		v := g.vector(x.order[from:to])
		col, err := e.EncodeColumn(to-from, c, &v)
		if err != nil {
			return err
		}
		col.Unload(away)
		enc[k][c] = col
	}
	return nil
}

// gatherers keeps the memory of gatherers.
var gatherers = newGatherers()

func newGatherers() *freelist.List[*gatherer] {
	return &freelist.List[*gatherer]{New: func() *gatherer { return new(gatherer) }}
}

// manyGroups is how many row groups of a table are encoded in memory; of more,
// the columns wait in a file until all of a row group are there.
const manyGroups = 8

// gatherer picks rows of a column in a given order.
type gatherer struct {
	src  source
	text bool
	rows rows
	ids  []int32 // position in Dict + 1, by string number
	vals []int64
	at   []int32
	buf  []int64 // memory for the values of a column
}

func (g *gatherer) vector(order []int32) schema.Vector {
	v := schema.Vector{Rows: g.at[:0], Vals: g.vals[:0]}
	if g.src.lists != nil {
		v.Vals = nil
		for r, i := range order {
			if list := g.src.lists(int(i)); list != nil {
				v.Rows = append(v.Rows, int32(r))
				v.Lists = append(v.Lists, list)
			}
		}
		g.at = v.Rows
		return v
	}
	if g.src.vals == nil {
		v.Rows = []int32{}
		return v
	}
	v.Rows, v.Vals = pick(g.src.vals, order, v.Rows, v.Vals)
	g.vals = v.Vals
	if v.Rows != nil {
		g.at = v.Rows
	}
	if g.text {
		v.Dict = g.number(v.Vals)
	}
	return v
}

// pick appends the values of the given rows and, unless all have one, the
// positions in order of those that do.
func pick(from []int64, order, rows []int32, vals []int64) ([]int32, []int64) {
	vals = slices.Grow(vals, len(order))[:len(order)]
	n := 0
	for ; n < len(order); n++ { // most columns have a value in every row, or few
		x := from[order[n]]
		if x == schema.Null {
			break
		}
		vals[n] = x
	}
	if n == len(order) {
		return nil, vals
	}
	vals = vals[:n]
	for r := range n {
		rows = append(rows, int32(r))
	}
	for r := n + 1; r < len(order); r++ {
		if x := from[order[r]]; x != schema.Null {
			rows, vals = append(rows, int32(r)), append(vals, x)
		}
	}
	if rows == nil {
		rows = []int32{}
	}
	return rows, vals
}

// number replaces numbers of strings by positions in the dictionary that it
// returns, which holds them in order of first use.
func (g *gatherer) number(vals []int64) (dict []string) {
	if g.ids == nil {
		n := len(g.src.dict)
		if g.src.names {
			n = g.rows.NumNames()
		}
		g.ids = make([]int32, n)
	}
	var used []int64
	for k, x := range vals {
		if g.ids[x] == 0 {
			s := ""
			if g.src.names {
				s = g.rows.Name(x)
			} else {
				s = g.src.dict[x]
			}
			dict = append(dict, s)
			g.ids[x] = int32(len(dict))
			used = append(used, x)
		}
		vals[k] = int64(g.ids[x] - 1)
	}
	for _, x := range used {
		g.ids[x] = 0
	}
	return dict
}

// codes turns a column of small codes into a source; code 0 is null where
// zeroNull is set.
func codes[T ~uint8](v []T, dict []string, zeroNull bool) source {
	out := make([]int64, len(v))
	for i, c := range v {
		out[i] = int64(c)
		if zeroNull && c == 0 {
			out[i] = schema.Null
		}
	}
	return source{vals: out, dict: dict}
}
