package btree

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"tracelake/internal/guard"
)

// Types of pages.
const (
	interior = 0x05
	leaf     = 0x0d
)

// unitPages is how many leaves are read and handed out together.
const unitPages = 64

// scanner walks one table.
type scanner struct {
	f    *File
	t    *Table
	buf  []byte
	seen []uint64 // pages visited

	chained atomic.Int64
}

func newScanner(f *File, t *Table) *scanner {
	return &scanner{f: f, t: t, seen: make([]uint64, f.pages/64+1)}
}

// visit notes a page, and refuses one that was there already.
func (s *scanner) visit(page uint32) error {
	if page < 1 || page > s.f.pages {
		return corrupt(page, "no such page: the file has %d", s.f.pages)
	}
	if s.seen[page/64]>>(page%64)&1 == 1 {
		return corrupt(page, "the page belongs to table %s more than once", s.t.Name)
	}
	s.seen[page/64] |= 1 << (page % 64)
	return nil
}

// leaves returns the leaves of the table in order, without reading them.
func (s *scanner) leaves() ([]uint32, error) {
	if err := s.visit(s.t.root); err != nil {
		return nil, err
	}
	// All leaves are equally deep: the first one tells how deep.
	level := []uint32{s.t.root}
	for range maxDepth {
		page, err := s.f.read(level[0], s.buf)
		if err != nil {
			return nil, err
		}
		s.buf = page
		if kind := page[head(level[0])]; kind == leaf {
			return level, nil
		} else if kind != interior {
			return nil, corrupt(level[0], "no page of table %s (type %d)", s.t.Name, kind)
		}
		var next []uint32
		for _, n := range level {
			if next, err = s.children(n, next); err != nil {
				return nil, err
			}
		}
		level = next
	}
	return nil, corrupt(s.t.root, "table %s is deeper than %d pages", s.t.Name, maxDepth)
}

// head is where the header of a page starts.
func head(page uint32) int {
	if page == 1 {
		return 100
	}
	return 0
}

// children appends the pages below an interior page.
func (s *scanner) children(n uint32, out []uint32) ([]uint32, error) {
	page, err := s.f.read(n, s.buf)
	if err != nil {
		return nil, err
	}
	s.buf = page
	h := head(n)
	if page[h] != interior {
		return nil, corrupt(n, "no interior page of table %s (type %d)", s.t.Name, page[h])
	}
	cells := int(binary.BigEndian.Uint16(page[h+3:]))
	if h+12+2*cells > s.f.usable {
		return nil, corrupt(n, "%d cells on one page", cells)
	}
	last := int64(math.MinInt64)
	for i := range cells {
		at := int(binary.BigEndian.Uint16(page[h+12+2*i:]))
		if at < h+12+2*cells || at+5 > s.f.usable {
			return nil, corrupt(n, "a cell at byte %d", at)
		}
		key, k := varint(page[at+4 : s.f.usable])
		if k == 0 || i > 0 && int64(key) <= last {
			return nil, corrupt(n, "keys that are out of order")
		}
		last = int64(key)
		child := binary.BigEndian.Uint32(page[at:])
		if err := s.visit(child); err != nil {
			return nil, err
		}
		out = append(out, child)
	}
	child := binary.BigEndian.Uint32(page[h+8:])
	if err := s.visit(child); err != nil {
		return nil, err
	}
	return append(out, child), nil
}

// leaf gives the records of a leaf.
func (s *scanner) leaf(n uint32, page []byte, rec *Record, row func(*Record) error) error {
	h, usable := head(n), s.f.usable
	if page[h] != leaf {
		return corrupt(n, "no leaf of table %s (type %d)", s.t.Name, page[h])
	}
	cells := int(binary.BigEndian.Uint16(page[h+3:]))
	if h+8+2*cells > usable {
		return corrupt(n, "%d cells on one page", cells)
	}
	rec.page, rec.file, rec.chained = n, s.f, &s.chained
	last := int64(math.MinInt64)
	for i := range cells {
		at := int(binary.BigEndian.Uint16(page[h+8+2*i:]))
		if at < h+8+2*cells || at+2 > usable {
			return corrupt(n, "a cell at byte %d", at)
		}
		b := page[at:usable]
		size, k := varint(b)
		if k == 0 || size > math.MaxInt32 {
			return corrupt(n, "a record of %d bytes", size)
		}
		id, k2 := varint(b[k:])
		if k2 == 0 {
			return corrupt(n, "a cell that ends within its rowid")
		}
		rec.Rowid = int64(id)
		if i > 0 && rec.Rowid <= last {
			return corrupt(n, "rowids that are out of order")
		}
		last = rec.Rowid
		b = b[k+k2:]
		if err := rec.set(b, int(size), usable); err != nil {
			return err
		}
		if err := rec.parse(s.t); err != nil {
			return err
		}
		if err := row(rec); err != nil {
			return err
		}
	}
	return nil
}

// set finds the part of a payload that stands on the page.
func (r *Record) set(b []byte, size, usable int) error {
	r.size, r.next, r.whole = size, 0, true
	most := usable - 35
	if size <= most {
		if size > len(b) {
			return corrupt(r.page, "a record of %d bytes with room for %d", size, len(b))
		}
		r.local = b[:size]
		return nil
	}
	least := (usable-12)*32/255 - 23
	n := least + (size-least)%(usable-4)
	if n > most {
		n = least
	}
	if n+4 > len(b) {
		return corrupt(r.page, "a record that starts with %d bytes with room for %d", n+4, len(b))
	}
	r.local, r.whole = b[:n], false
	r.next = binary.BigEndian.Uint32(b[n:])
	return nil
}

// Unit is a run of rows of a table that one worker has read.
type Unit[T any] struct {
	Out         T
	Bytes       int64
	err         error
	first, last int64 // rowids
	rows        int
	done        chan struct{}
}

// Scan reads a table. Workers fill values made by alloc with rows, and emit
// gets them in the order of the table, one at a time. Row must be safe for use
// with different values at once. Gate, where set, holds a token per goroutine
// that may compute.
func Scan[T any](ctx context.Context, f *File, t *Table, workers int, gate chan struct{}, alloc func() T, row func(T, *Record) error, emit func(T, int64) error) error {
	if t.Unsupported {
		return ErrUnsupported
	}
	s := newScanner(f, t)
	leaves, err := s.leaves()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	units := make(chan *Unit[T], workers) // in order; full when workers are ahead
	type job struct {
		u      *Unit[T]
		leaves []uint32
	}
	jobs := make(chan job)
	var wg sync.WaitGroup
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var rec Record
			var buf []byte
			for j := range jobs {
				if gate != nil {
					gate <- struct{}{}
				}
				err := guard.Call(func() (err error) {
					j.u.Out = alloc()
					buf, err = readUnit(s, j.leaves, buf, &rec, j.u, row)
					return err
				})
				if p := (*guard.PanicError)(nil); errors.As(err, &p) {
					err = corrupt(j.leaves[0], "a row of table %s here, or on one of the %d pages behind, cannot be read", t.Name, len(j.leaves)-1)
				}
				j.u.err = err
				j.u.Bytes = int64(len(j.leaves)) * int64(f.pageSize)
				if gate != nil {
					<-gate
				}
				close(j.u.done)
			}
		}()
	}
	go func() {
		defer close(units)
		defer close(jobs)
		for len(leaves) > 0 && ctx.Err() == nil {
			n := min(unitPages, len(leaves))
			u := &Unit[T]{done: make(chan struct{})}
			select {
			case units <- u:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- job{u, leaves[:n]}:
			case <-ctx.Done():
				u.err = ctx.Err()
				close(u.done)
				return
			}
			leaves = leaves[n:]
		}
	}()
	last, any := int64(0), false
	for u := range units {
		<-u.done
		if err != nil {
			continue
		}
		if err = u.err; err == nil && u.rows > 0 {
			if any && u.first <= last {
				err = corrupt(t.root, "rowids of table %s that are out of order", t.Name)
			}
			last, any = u.last, true
		}
		if err == nil {
			err = emit(u.Out, u.Bytes)
		}
		if err != nil {
			cancel()
		}
	}
	wg.Wait()
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// readUnit reads leaves, neighbouring ones at once.
func readUnit[T any](s *scanner, leaves []uint32, buf []byte, rec *Record, u *Unit[T], row func(T, *Record) error) ([]byte, error) {
	for len(leaves) > 0 {
		n := 1
		for n < len(leaves) && leaves[n] == leaves[0]+uint32(n) {
			n++
		}
		run, err := s.f.readRun(leaves[0], n, buf)
		if err != nil {
			return buf, err
		}
		buf = run
		for i := range n {
			page := run[i*s.f.pageSize : (i+1)*s.f.pageSize]
			err := s.leaf(leaves[i], page, rec, func(r *Record) error {
				if u.rows == 0 {
					u.first = r.Rowid
				} else if r.Rowid <= u.last {
					return corrupt(leaves[i], "rowids that are out of order")
				}
				u.last = r.Rowid
				u.rows++
				return row(u.Out, r)
			})
			if err != nil {
				return buf, err
			}
		}
		leaves = leaves[n:]
	}
	return buf, nil
}
