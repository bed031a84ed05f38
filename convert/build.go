package convert

import (
	"tracelake/schema"
)

// builder collects rows of a table one by one, for tables that are made and
// not read.
type builder struct {
	t    *schema.Table
	n    int
	cols []schema.Vector
	dict []map[string]int64
	at   map[string]int
}

func newBuilder(t *schema.Table) *builder {
	b := &builder{t: t, at: make(map[string]int, len(t.Columns))}
	for i := range t.Columns {
		b.at[t.Columns[i].Name] = i
	}
	b.clear()
	return b
}

// row starts a row; values set before the next call belong to it.
func (b *builder) row() { b.n++ }

func (b *builder) col(name string) (*schema.Vector, int) {
	c, ok := b.at[name]
	if !ok {
		panic("convert: no column " + b.t.Name + "." + name)
	}
	b.cols[c].Rows = append(b.cols[c].Rows, int32(b.n-1))
	return &b.cols[c], c
}

func (b *builder) int(name string, v int64) {
	if v == schema.Null {
		return
	}
	x, _ := b.col(name)
	x.Vals = append(x.Vals, v)
}

func (b *builder) optInt(name string, v schema.Opt[int64]) {
	if v.OK {
		b.int(name, v.V)
	}
}

func (b *builder) text(name, v string) {
	v = schema.ValidText(v)
	x, c := b.col(name)
	if b.dict[c] == nil {
		b.dict[c] = map[string]int64{}
	}
	id, ok := b.dict[c][v]
	if !ok {
		id = int64(len(x.Dict))
		b.dict[c][v] = id
		x.Dict = append(x.Dict, v)
	}
	x.Vals = append(x.Vals, id)
}

// optText sets a text that is null where empty.
func (b *builder) optText(name, v string) {
	if v != "" {
		b.text(name, v)
	}
}

func (b *builder) opt(name string, v schema.Opt[string]) {
	if v.OK {
		b.text(name, v.V)
	}
}

// take returns the rows and starts afresh.
func (b *builder) take() (int, []schema.Vector) {
	n, cols := b.n, b.cols
	for i := range cols {
		if len(cols[i].Rows) == n {
			cols[i].Rows = nil
		}
	}
	b.clear()
	return n, cols
}

func (b *builder) clear() {
	b.n = 0
	b.cols, b.dict = make([]schema.Vector, len(b.t.Columns)), make([]map[string]int64, len(b.t.Columns))
}
