package kineto

import (
	"slices"

	"tracelake/internal/freelist"
	"tracelake/schema"
)

// column holds the values of one column in a batch: rows that have one, and
// the value, a string as its number in the batch's interner.
type column struct {
	rows []int32 // empty where the values are those of the first len(vals) rows
	vals []int64
}

// put stores the value of a row. Rows come in ascending order, each once.
func (c *column) put(row int32, v int64) {
	if n := len(c.vals); n < cap(c.vals) && int(row) == n && len(c.rows) == 0 {
		c.vals = c.vals[:n+1]
		c.vals[n] = v
		return
	}
	c.putSparse(row, v)
}

// putSparse is put for a column that rows lack.
func (c *column) putSparse(row int32, v int64) {
	if n := len(c.vals); n < cap(c.vals) && n < cap(c.rows) && len(c.rows) == n {
		c.rows, c.vals = c.rows[:n+1], c.vals[:n+1]
		c.rows[n], c.vals[n] = row, v
		return
	}
	c.putSlowly(row, v)
}

// putSlowly makes room, and writes row numbers once a row has been left out.
func (c *column) putSlowly(row int32, v int64) {
	n := len(c.vals)
	if n == cap(c.vals) {
		c.vals = slices.Grow(c.vals, max(512, n))
	}
	if len(c.rows) == 0 && int(row) != n || len(c.rows) > 0 {
		if cap(c.rows) <= n {
			c.rows = slices.Grow(c.rows, cap(c.vals)-len(c.rows))
		}
		for r := len(c.rows); r < n; r++ {
			c.rows = append(c.rows, int32(r))
		}
		c.rows = append(c.rows, row)
	}
	c.vals = append(c.vals, v)
}

// tableBatch holds the rows of one table.
type tableBatch struct {
	n    int32
	cols []column
}

// batch is what one chunk decodes to.
type batch struct {
	strs    *interner // all strings of the batch
	tables  [numTables]tableBatch
	members int64 // members of the event array, whatever they are
	kinds   map[kindKey]int64
	notes   []note
	count   map[schema.Code]int64 // occurrences, of which notes holds the first
	times   timeStats
}

// kindKey is a phase and category, as numbers of strings; noString is none.
type kindKey struct{ ph, cat uint32 }

const noString = ^uint32(0)

// note is one place where something was noticed.
type note struct {
	code    schema.Code
	offset  int64 // in the chunk
	member  int64 // in the batch
	message string
}

// timeStats summarises the recorded times of a batch, in ns without the base.
type timeStats struct {
	any           bool
	first, last   int64 // earliest start and latest end of timed events that are not at 0
	zeros         int64 // duration events at time 0
	zeroLast      int64 // latest end of events at time 0
	zeroAny       bool
	fine          bool  // a time that is no whole microsecond
	shortFraction bool  // a fraction of one or two digits
	timed, epoch  int64 // timed events, and those whose time counts from the epoch
}

func (t *timeStats) add(o *timeStats) {
	if o.any {
		if !t.any || o.first < t.first {
			t.first = o.first
		}
		if !t.any || o.last > t.last {
			t.last = o.last
		}
		t.any = true
	}
	if o.zeroAny {
		t.zeroLast = max(t.zeroLast, o.zeroLast)
		t.zeroAny = true
	}
	t.zeros += o.zeros
	t.fine = t.fine || o.fine
	t.shortFraction = t.shortFraction || o.shortFraction
	t.timed += o.timed
	t.epoch += o.epoch
}

// batches keeps the memory of batches from file to file.
var batches = freelist.List[*batch]{New: newBatch}

func newBatch() *batch {
	b := &batch{strs: newInterner(), kinds: map[kindKey]int64{}, count: map[schema.Code]int64{}}
	for i := range b.tables {
		b.tables[i].cols = make([]column, len(specs[i].table.Columns))
	}
	return b
}

func (b *batch) reset() {
	b.strs.reset()
	for i := range b.tables {
		t := &b.tables[i]
		t.n = 0
		for j := range t.cols {
			t.cols[j].rows, t.cols[j].vals = t.cols[j].rows[:0], t.cols[j].vals[:0]
		}
	}
	b.members = 0
	clear(b.kinds)
	clear(b.count)
	b.notes = b.notes[:0]
	b.times = timeStats{}
}

// add notes one occurrence at an offset of the chunk.
func (b *batch) add(code schema.Code, offset int, message string) {
	b.count[code]++
	if b.count[code] <= schema.MaxPlaces {
		b.notes = append(b.notes, note{code, int64(offset), b.members, message})
	}
}
