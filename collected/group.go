package collected

import "tracelake/schema"

// group collects rows of a table until they fill a row group.
type group struct {
	t     *schema.Table
	keys  Keys
	n     int
	bytes int // of distinct strings
	cols  []schema.Vector
	dict  []map[string]int64
}

func newGroup(t *schema.Table, keys Keys) *group {
	g := &group{t: t, keys: keys}
	g.clear()
	return g
}

func (g *group) clear() {
	g.n, g.bytes = 0, 0
	g.cols, g.dict = make([]schema.Vector, len(g.t.Columns)), make([]map[string]int64, len(g.t.Columns))
}

// add stores a value of the current row, which is row number n.
func (g *group) add(c int, v int64, text string) {
	x := &g.cols[c]
	x.Rows = append(x.Rows, int32(g.n))
	if g.t.Columns[c].Type != schema.String {
		x.Vals = append(x.Vals, v)
		return
	}
	if g.dict[c] == nil {
		g.dict[c] = map[string]int64{}
	}
	id, ok := g.dict[c][text]
	if !ok {
		id = int64(len(x.Dict))
		g.dict[c][text] = id
		x.Dict = append(x.Dict, text)
		g.bytes += len(text)
	}
	x.Vals = append(x.Vals, id)
}

// take returns the rows and starts a new row group.
func (g *group) take() (int, []schema.Vector) {
	n, cols := g.n, g.cols
	for i, k := range []string{g.keys.Model, g.keys.Revision, g.keys.Framework, g.keys.Mode, g.keys.Tracer, g.keys.TracerVersion} {
		if k != "" {
			cols[1+i] = schema.Vector{Vals: make([]int64, n), Dict: []string{k}}
		} else {
			cols[1+i] = schema.Vector{Rows: []int32{}}
		}
	}
	for c := schema.CollectedKeys; c < len(cols); c++ {
		switch {
		case len(cols[c].Rows) == n:
			cols[c].Rows = nil
		case cols[c].Rows == nil:
			cols[c].Rows = []int32{}
		}
	}
	g.clear()
	return n, cols
}
