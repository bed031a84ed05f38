package slice

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tracelake/analyze/query"
)

// record is a row with its columns by name.
type record struct {
	at map[string]int
	v  []any
}

func positions(cols []query.Column) map[string]int {
	at := make(map[string]int, len(cols))
	for i, c := range cols {
		at[c.Name] = i
	}
	return at
}

// value returns nil for null and for a column that the table does not have.
func (r record) value(name string) any {
	if i, ok := r.at[name]; ok {
		return r.v[i]
	}
	return nil
}

func (r record) int(name string) (int64, bool) {
	n, ok := r.value(name).(int64)
	return n, ok
}

func (r record) text(name string) string {
	t, _ := r.value(name).(string)
	return t
}

// pageRows is how many rows are in memory at a time, per table.
const pageRows = 8192

// cursor reads a temporary table in order, a page at a time: the driver keeps
// a whole answer in memory.
type cursor struct {
	db    *query.DB
	table string
	next  int64 // rowid
	page  []any // rows of the page, one behind the other
	rec   record
	left  int // rows of the page from rec.v on, rec included
	end   bool
}

// advance goes to the next row; the values of the last one stay valid until
// the page ends.
func (c *cursor) advance(ctx context.Context) (bool, error) {
	if c.left > 1 {
		c.left--
		n := len(c.rec.at)
		at := len(c.page) - c.left*n
		c.rec.v = c.page[at : at+n]
		return true, nil
	}
	if c.end {
		return false, nil
	}
	if err := c.load(ctx); err != nil {
		return false, err
	}
	if len(c.page) == 0 {
		c.end = true
		return false, nil
	}
	n := len(c.rec.at)
	c.left = len(c.page) / n
	c.rec.v = c.page[:n]
	return true, nil
}

func (c *cursor) load(ctx context.Context) (err error) {
	rows, err := c.db.Query(ctx, fmt.Sprintf("SELECT * FROM %s WHERE rowid >= %d AND rowid < %d ORDER BY rowid", c.table, c.next, c.next+pageRows))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	c.next += pageRows
	c.rec.at = positions(rows.Columns())
	n := len(c.rec.at)
	c.page = c.page[:0]
	for {
		at := len(c.page)
		for range n {
			c.page = append(c.page, nil)
		}
		if err := rows.Next(c.page[at:]); errors.Is(err, io.EOF) {
			c.page = c.page[:at]
			return nil
		} else if err != nil {
			return err
		}
	}
}
