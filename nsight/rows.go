package nsight

import "tracelake/schema"

// Rows holds a table that stays in memory until the end of an import, in
// source order. Columns are kept packed and computed when asked for.
type Rows struct {
	Table *schema.Table
	n     int
	parts []part
	names *names
}

// part holds the rows that come from one table of the export.
type part struct {
	n    int
	cols []filler // by column of Table; nil where no row has a value
}

// filler writes a value per row, schema.Null where there is none.
type filler func(out []int64)

func (r *Rows) add(n int, cols map[string]filler) {
	p := part{n: n, cols: make([]filler, len(r.Table.Columns))}
	for name, f := range cols {
		c := r.Table.Col(name)
		if c < 0 {
			panic("nsight: no column " + r.Table.Name + "." + name)
		}
		p.cols[c] = f
	}
	r.parts = append(r.parts, p)
	r.n += n
}

// Err returns nil: rows are in memory.
func (r *Rows) Err() error { return nil }

// Len returns the number of rows.
func (r *Rows) Len() int { return r.n }

// Has reports whether rows may have a value in a column.
func (r *Rows) Has(col string) bool {
	c := r.Table.Col(col)
	for _, p := range r.parts {
		if p.n > 0 && p.cols[c] != nil {
			return true
		}
	}
	return false
}

// Values returns a column by name: an integer, the bits of a float64, or the
// number of a string for Name; schema.Null where a row has no value.
func (r *Rows) Values(col string) []int64 { return r.ValuesAt(r.Table.Col(col)) }

// ValuesAt returns the column at a position.
func (r *Rows) ValuesAt(col int) []int64 { return r.ValuesInto(nil, col) }

// ValuesInto is ValuesAt in the memory of out, where that suffices.
func (r *Rows) ValuesInto(out []int64, col int) []int64 {
	if cap(out) < r.n {
		out = make([]int64, r.n)
	}
	out = out[:r.n]
	at := out
	for _, p := range r.parts {
		if f := p.cols[col]; f != nil {
			f(at[:p.n])
		} else {
			for i := range at[:p.n] {
				at[i] = schema.Null
			}
		}
		at = at[p.n:]
	}
	return out
}

// Name returns a string by its number.
func (r *Rows) Name(id int64) string { return r.names.list[id] }

// NumNames returns how many strings all rows of the report share.
func (r *Rows) NumNames() int { return len(r.names.list) }

// Names returns all strings by number.
func (r *Rows) Names() []string { return r.names.list[:len(r.names.list):len(r.names.list)] }

func constant(v int64) filler {
	return func(out []int64) {
		for i := range out {
			out[i] = v
		}
	}
}

func counting(from int64) filler {
	return func(out []int64) {
		for i := range out {
			out[i] = from + int64(i)
		}
	}
}

// mapped applies f to each known value of a column.
func mapped(col *stored, f func(int64) int64) filler {
	if !col.some() {
		return nil
	}
	return func(out []int64) {
		col.fill(out)
		for i, v := range out {
			if v != schema.Null {
				out[i] = f(v)
			}
		}
	}
}

func plain(col *stored) filler {
	if !col.some() {
		return nil
	}
	return col.fill
}

// nonzero is for IDs whose 0 means that there is none.
func nonzero(col *stored) filler {
	return mapped(col, func(v int64) int64 {
		if v == 0 {
			return schema.Null
		}
		return v
	})
}

// combined computes a column from two others.
func combined(a, b *stored, f func(a, b int64) int64) filler {
	if !a.some() && !b.some() {
		return nil
	}
	return func(out []int64) {
		a.fill(out)
		other := make([]int64, blockRows)
		for i := range b.segs {
			s := &b.segs[i]
			s.fill(other)
			for k := range s.rows {
				out[k] = f(out[k], other[k])
			}
			out = out[s.rows:]
		}
	}
}

// eager computes a column at once, where that makes new strings: columns are
// asked for from several goroutines.
func eager(n int, f filler) filler {
	if f == nil || n == 0 {
		return nil
	}
	vals := make([]int64, n)
	f(vals)
	out := stored{rows: n}
	for from := 0; from < n; from += blockRows {
		out.segs = append(out.segs, pack(vals[from:min(n, from+blockRows)]))
	}
	return plain(&out)
}

// duration is end - start; schema.Null where a time is missing or the
// difference is out of range.
func duration(start, end int64) int64 {
	if start == schema.Null || end == schema.Null {
		return schema.Null
	}
	d := end - start
	if (d < 0) != (end < start) {
		return schema.Null
	}
	return d
}

// IDs of processes and threads.
const threadBits = 1<<24 - 1

func processKey(global int64) int64 { return global &^ threadBits }

func processID(global int64) int64 { return global >> 24 & threadBits }

func threadID(global int64) int64 { return global & threadBits }
