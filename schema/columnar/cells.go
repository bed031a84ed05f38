package columnar

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"tracelake/schema"
)

// cells is a column of a row group with its declaration.
type cells struct {
	decl  *schema.Column
	rows  int
	v     *Vector
	dense bool // every row has a value; set by check
}

var errBool = errors.New("a value that is neither 0 nor 1")

var errMissing = errors.New("rows without a value in a column that must have one")

// check makes sure that nothing below can read past the end of a slice.
func (c *cells) check() error {
	v, n := c.v, c.values()
	if v.Rows == nil {
		c.dense = n == c.rows
		// A vector that holds nothing at all is a column without values.
		if !c.dense && n != 0 {
			return fmt.Errorf("%d values for %d rows", n, c.rows)
		}
	} else {
		if n != len(v.Rows) {
			return fmt.Errorf("%d values for %d row numbers", n, len(v.Rows))
		}
		prev := int32(-1)
		for _, r := range v.Rows {
			if r <= prev {
				return fmt.Errorf("row number %d after %d", r, prev)
			}
			prev = r
		}
		if int(prev) >= c.rows {
			return fmt.Errorf("row number %d of %d rows", prev, c.rows)
		}
		c.dense = n == c.rows
	}
	if !c.dense && !c.decl.Nullable {
		return errMissing
	}
	return nil
}

// values returns how many rows have a value.
func (c *cells) values() int {
	if c.decl.Type == schema.Intervals {
		return len(c.v.Lists)
	}
	return len(c.v.Vals)
}

// ascending reports whether the values never fall and nulls come last.
func (c *cells) ascending() bool {
	if n := len(c.v.Rows); n > 0 && int(c.v.Rows[n-1]) != n-1 {
		return false
	}
	return slices.IsSorted(c.v.Vals)
}

// checkAll also checks the values, and returns how much text they hold.
func (c *cells) checkAll() (text int, err error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	switch c.decl.Type {
	case schema.Bool:
		for _, x := range c.v.Vals {
			if x&^1 != 0 {
				return 0, errBool
			}
		}
	case schema.String:
		seen := make([]bool, len(c.v.Dict))
		for _, p := range c.v.Vals {
			if uint64(p) >= uint64(len(seen)) {
				return 0, errPosition(c.v.Dict)
			}
			if !seen[p] {
				seen[p] = true
				if err := checkText(c.v.Dict[p]); err != nil {
					return 0, err
				}
			}
			text += len(c.v.Dict[p])
		}
	}
	return text, nil
}

func errPosition(dict []string) error {
	return fmt.Errorf("position outside a dictionary of %d strings", len(dict))
}

func checkText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("text that is not UTF-8: %.60q", s)
	}
	return nil
}

// slice returns the rows from r0 to r1 of a checked column.
func (c *cells) slice(r0, r1 int) Vector {
	k0, k1 := r0, r1
	out := Vector{Dict: c.v.Dict}
	if !c.dense {
		k0, _ = slices.BinarySearch(c.v.Rows, int32(r0))
		k1, _ = slices.BinarySearch(c.v.Rows, int32(r1))
		out.Rows = make([]int32, k1-k0)
		for i, r := range c.v.Rows[k0:k1] {
			out.Rows[i] = r - int32(r0)
		}
	}
	if c.decl.Type == schema.Intervals {
		out.Lists = c.v.Lists[k0:k1]
	} else {
		out.Vals = c.v.Vals[k0:k1]
	}
	return out
}
