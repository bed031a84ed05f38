package nsight

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"tracelake/internal/digest"
	"tracelake/internal/guard"
	"tracelake/schema"
)

// collector gathers rows in blocks, which are packed and hashed beside each
// other. Blocks have the same rows whatever batches they come in.
type collector struct {
	r      *reader
	wants  []want
	cur    [][]int64
	n      int  // rows in all
	at     int  // rows in cur
	drop   bool // hash only
	blocks [][]*block
	nums   []int64 // of the texts of a batch
}

type block struct {
	seg segment
	sum [digest.Size]byte
}

var buffers = sync.Pool{New: func() any { b := make([]int64, 0, blockRows); return &b }}

func (r *reader) newCollector(wants []want, drop bool) *collector {
	c := &collector{r: r, wants: wants, drop: drop, cur: make([][]int64, len(wants)), blocks: make([][]*block, len(wants))}
	c.fresh()
	return c
}

func (c *collector) fresh() {
	for j := range c.cur {
		c.cur[j] = (*buffers.Get().(*[]int64))[:0]
	}
	c.at = 0
}

// add appends rows of a batch: those in keep, or all where keep is nil.
func (c *collector) add(b *batch, keep []int32) error {
	if err := c.number(b, keep); err != nil {
		return err
	}
	rows := b.n
	if keep != nil {
		rows = len(keep)
	}
	for from := 0; from < rows; {
		n := min(rows-from, blockRows-c.at)
		for j := range c.cur {
			c.cur[j] = c.appendRows(c.cur[j], b, j, keep, from, n)
		}
		from += n
		c.at += n
		c.n += n
		if c.at == blockRows {
			c.seal()
		}
	}
	return nil
}

// number gives the texts of rows their numbers in the report, row by row, so
// that they do not depend on what comes in one batch.
func (c *collector) number(b *batch, keep []int32) error {
	c.nums = c.nums[:0]
	for range b.texts.list {
		c.nums = append(c.nums, schema.Null)
	}
	one := func(i int) {
		for j, w := range c.wants {
			if w.kind != text || b.cols[j] == nil {
				continue
			}
			if v := b.cols[j][i]; v != schema.Null && c.nums[v] == schema.Null {
				c.nums[v] = c.r.names.put(b.texts.list[v])
			}
		}
	}
	switch {
	case len(b.texts.list) == 0:
		return nil
	case keep != nil:
		for _, i := range keep {
			one(int(i))
		}
	default:
		for i := range b.n {
			one(i)
		}
	}
	if c.r.names.bytes > maxTextBytes {
		return reject("the report holds more than %d MiB of distinct strings", maxTextBytes>>20)
	}
	return nil
}

func (c *collector) appendRows(dst []int64, b *batch, j int, keep []int32, from, n int) []int64 {
	src := b.cols[j]
	switch {
	case src == nil:
		for range n {
			dst = append(dst, schema.Null)
		}
		return dst
	case keep == nil && c.wants[j].kind != text:
		return append(dst, src[from:from+n]...)
	}
	for i := from; i < from+n; i++ {
		v := int64(0)
		if keep != nil {
			v = src[keep[i]]
		} else {
			v = src[i]
		}
		if v != schema.Null && c.wants[j].kind == text {
			v = c.nums[v]
		}
		dst = append(dst, v)
	}
	return dst
}

func (c *collector) seal() {
	for j := range c.cur {
		vals, x := c.cur[j], &block{}
		c.blocks[j] = append(c.blocks[j], x)
		drop := c.drop
		c.r.tasks.run(func() error {
			x.seg = pack(vals)
			if !x.seg.none {
				x.sum = x.seg.sum()
			}
			if drop {
				x.seg = segment{rows: x.seg.rows, none: x.seg.none}
			}
			buffers.Put(&vals)
			return nil
		})
	}
	c.fresh()
}

// finish waits for the blocks, adds them to the digest under the name of the
// table, and returns the columns.
func (c *collector) finish(name string) ([]stored, error) {
	if c.at > 0 {
		c.seal()
	}
	for j := range c.cur {
		buffers.Put(&c.cur[j])
	}
	if err := c.r.tasks.wait(); err != nil {
		return nil, err
	}
	out := make([]stored, len(c.wants))
	if c.n == 0 {
		return out, nil
	}
	c.r.hash(name, uint64(c.n))
	for j, list := range c.blocks {
		out[j].rows = c.n
		h, some := digest.New(), false
		for _, x := range list {
			out[j].segs = append(out[j].segs, x.seg)
			h.Write(x.sum[:])
			some = some || !x.seg.none
		}
		if some { // a column without values counts like one that is not there
			c.r.hash(name+"."+c.wants[j].name, uint64(len(list)))
			c.r.digest.Write(h.Sum(nil))
		}
	}
	return out, nil
}

// hash adds a name and a number to the digest.
func (r *reader) hash(name string, n uint64) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(len(name)))
	binary.LittleEndian.PutUint64(b[8:], n)
	r.digest.Write(b[:])
	r.digest.Write([]byte(name))
}

// tasks runs functions beside each other, at most as many as there are workers.
type tasks struct {
	limit chan struct{}
	gate  chan struct{}
	wg    sync.WaitGroup
	mu    sync.Mutex
	err   error // the first one
}

func (t *tasks) run(f func() error) {
	t.limit <- struct{}{}
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		defer func() { <-t.limit }()
		if t.gate != nil {
			t.gate <- struct{}{}
			defer func() { <-t.gate }()
		}
		if err := guard.Call(f); err != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.err = cmp.Or(t.err, err)
		}
	}()
}

// wait returns what a function failed with.
func (t *tasks) wait() error {
	t.wg.Wait()
	if p := (*guard.PanicError)(nil); errors.As(t.err, &p) {
		return reject("the export is damaged: its rows cannot be packed; export the report again")
	}
	return t.err
}

// read is what is known of a table of the export.
type read struct {
	n     int
	first int64 // event_index of its first row
	cols  map[string]*stored
}

// col returns a column, an empty one where the table lacks it.
func (t *read) col(name string) *stored {
	if s := t.cols[name]; s != nil {
		return s
	}
	panic("nsight: column " + name + " was not asked for")
}

// collect reads a table into memory. A table that is absent has no rows.
func (r *reader) collect(ctx context.Context, table string, wants []want) (*read, error) {
	c := r.newCollector(wants, false)
	err := r.scan(ctx, table, wants, func(b *batch) error { return c.add(b, nil) })
	if err != nil {
		return nil, err
	}
	cols, err := c.finish(table)
	if err != nil {
		return nil, err
	}
	out := &read{n: c.n, first: r.events, cols: map[string]*stored{}}
	r.events += int64(c.n)
	for j, s := range cols {
		out.cols[wants[j].name] = &s
	}
	return out, nil
}

// scan reads a table under the name that the export has for it.
func (r *reader) scan(ctx context.Context, table string, wants []want, emit func(*batch) error) error {
	name := r.table(table)
	if name == "" {
		return nil
	}
	return r.src.scan(ctx, name, wants, nil, func(b *batch) error {
		if b.n == 0 {
			return nil
		}
		// Nothing can be done with rows without times.
		for j, w := range wants {
			if b.cols[j] == nil && (w.name == "start" || w.name == "end" || w.name == "timestamp") {
				return reject("table %s has no column %s", name, w.name)
			}
		}
		r.odd += b.odd
		return emit(b)
	})
}
