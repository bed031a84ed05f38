package nsight

import (
	"math"

	"tracelake/schema"
)

// emitter collects rows of a table that is written while the export is read.
type emitter struct {
	r    *reader
	t    *schema.Table
	n    int
	cols []schema.Vector
	dict []map[string]int64
	at   map[string]int
	size int // bytes of distinct strings
}

func (r *reader) newEmitter(t *schema.Table) *emitter {
	e := &emitter{r: r, t: t, at: map[string]int{}}
	for i := range t.Columns {
		e.at[t.Columns[i].Name] = i
	}
	e.clear()
	return e
}

func (e *emitter) clear() {
	e.n, e.size = 0, 0
	e.cols, e.dict = make([]schema.Vector, len(e.t.Columns)), make([]map[string]int64, len(e.t.Columns))
}

// maxGroupText bounds the distinct strings of a row group, in bytes.
const maxGroupText = 64 << 20

// row starts a row; values set before the next call belong to it.
func (e *emitter) row() error {
	if e.n == e.r.o.RowGroup || e.size > maxGroupText {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.n++
	return nil
}

func (e *emitter) int(col string, v int64) {
	if v == schema.Null {
		return
	}
	x := &e.cols[e.col(col)]
	x.Rows = append(x.Rows, int32(e.n-1))
	x.Vals = append(x.Vals, v)
}

func (e *emitter) col(name string) int {
	c, ok := e.at[name]
	if !ok {
		panic("nsight: no column " + e.t.Name + "." + name)
	}
	return c
}

func (e *emitter) text(col, s string) {
	c := e.col(col)
	x := &e.cols[c]
	if e.dict[c] == nil {
		e.dict[c] = map[string]int64{}
	}
	id, ok := e.dict[c][s]
	if !ok {
		id = int64(len(x.Dict))
		e.dict[c][s] = id
		x.Dict = append(x.Dict, s)
		e.size += len(s)
	}
	x.Rows = append(x.Rows, int32(e.n-1))
	x.Vals = append(x.Vals, id)
}

// name sets a text by its number in the report.
func (e *emitter) name(col string, n int64) {
	if n != schema.Null {
		e.text(col, e.r.names.list[n])
	}
}

// process sets the process and thread of a global ID.
func (e *emitter) process(global int64, thread bool) {
	if global == schema.Null {
		return
	}
	e.int("pid", processID(global))
	e.int("global_pid", processKey(global))
	if thread {
		e.int("tid", threadID(global))
	}
}

// start sets the start of an instant.
func (e *emitter) start(v int64) {
	if e.r.moment(v) {
		s, _ := addBase(v, e.r.res.BaseNS)
		e.int("start_ns", s)
	}
}

// times sets the times of a duration.
func (e *emitter) times(start, end int64) {
	d := duration(start, end)
	e.int("dur_ns", d)
	if !e.r.interval(start, end) {
		e.text("time_flag", "bad_time")
		return
	}
	switch {
	case d == schema.Null:
		e.text("time_flag", "missing_duration")
	case d < 0:
		e.text("time_flag", "negative_duration")
	default:
		if last, ok := addBase(end, e.r.res.BaseNS); ok {
			e.int("end_ns", last)
		} else {
			e.text("time_flag", "bad_time")
		}
	}
	abs, _ := addBase(start, e.r.res.BaseNS)
	e.int("start_ns", abs)
}

func addBase(v, base int64) (int64, bool) {
	s := v + base
	return s, (s > v) == (base > 0) && v != schema.Null && s != schema.Null
}

func (e *emitter) flush() error {
	if e.n == 0 {
		return nil
	}
	n, cols := e.n, e.cols
	for i := range cols {
		if len(cols[i].Rows) == n {
			cols[i].Rows = nil
		} else if cols[i].Rows == nil {
			cols[i].Rows = []int32{}
		}
	}
	e.r.res.Rows[e.t.Name] += int64(n)
	e.clear()
	if e.r.o.RowGroups == nil {
		return nil
	}
	return e.r.o.RowGroups(e.t, n, cols, func() {})
}

// number sets the value of a counter.
func (e *emitter) number(v int64) {
	if v == schema.Null {
		return
	}
	e.int("value_int", v)
	e.int("value", int64(math.Float64bits(float64(v))))
}
