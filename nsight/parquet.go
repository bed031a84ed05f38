package nsight

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"tracelake/internal/regular"
	"tracelake/schema"
)

// parquetTable is a table in a Parquet file.
type parquetTable struct{ path string }

func (p *parquetTable) open() (*os.File, *parquet.File, error) {
	f, err := regular.Open(p.path)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	var file *parquet.File
	if err == nil {
		err = guarded(p.path, func() (err error) {
			file, err = parquet.OpenFile(f, st.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
			if err != nil {
				err = damaged(p.path, err)
			}
			return err
		})
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, file, nil
}

func (p *parquetTable) columns() ([]string, error) {
	f, file, err := p.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []string
	for _, c := range file.Root().Columns() {
		out = append(out, c.Name())
	}
	return out, nil
}

func (p *parquetTable) scan(ctx context.Context, wants []want, emit func(*batch) error) error {
	f, file, err := p.open()
	if err != nil {
		return err
	}
	defer f.Close()
	var sent error
	err = guarded(p.path, func() error {
		cols, err := p.bind(file, wants)
		if err != nil {
			return err
		}
		b := newBatch(wants, func(j int) bool { return cols[j] != nil })
		for _, g := range file.RowGroups() {
			if sent = p.group(ctx, g, cols, b, wants, emit); sent != nil {
				return sent
			}
		}
		return nil
	})
	if sent != nil {
		return sent
	}
	return err
}

// leafColumn is where a column stands and how its integers are to be read.
type leafColumn struct {
	index    int
	unsigned bool
	unit     time.Duration // of a time that is no number of nanoseconds
	pages    parquet.Pages
	values   parquet.ValueReader
	buf      []parquet.Value
	have     []parquet.Value // of buf, not read yet
	done     bool
}

func (p *parquetTable) bind(file *parquet.File, wants []want) ([]*leafColumn, error) {
	var names []string
	list := file.Root().Columns()
	for _, c := range list {
		names = append(names, c.Name())
	}
	out := make([]*leafColumn, len(wants))
	for j, w := range wants {
		i := column(names, w.name)
		if i < 0 {
			continue
		}
		c := list[i]
		if !c.Leaf() || c.MaxRepetitionLevel() > 0 {
			return nil, reject("%s: column %s is nested", p.path, w.name)
		}
		l := &leafColumn{index: c.Index(), buf: make([]parquet.Value, 1024)}
		if t := c.Type().LogicalType(); t != nil {
			switch v := t.Value.(type) {
			case *format.IntType:
				l.unsigned = !v.IsSigned
			case *format.TimestampType:
				if u := v.Unit.Value; u != nil {
					l.unit = u.Duration()
				}
			}
		}
		if t := c.Type().ConvertedType(); t != nil {
			l.unsigned = l.unsigned || *t >= 11 && *t <= 14 // UINT_8 to UINT_64
		}
		out[j] = l
	}
	return out, nil
}

func (p *parquetTable) group(ctx context.Context, g parquet.RowGroup, cols []*leafColumn, b *batch, wants []want, emit func(*batch) error) error {
	chunks := g.ColumnChunks()
	for _, c := range cols {
		if c == nil {
			continue
		}
		if c.pages != nil {
			_ = c.pages.Close()
		}
		c.pages, c.values, c.have, c.done = chunks[c.index].Pages(), nil, nil, false
	}
	defer func() {
		for _, c := range cols {
			if c != nil && c.pages != nil {
				_ = c.pages.Close()
				c.pages = nil
			}
		}
	}()
	for left := g.NumRows(); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := int(min(left, libraryRows))
		b.reset()
		for j, c := range cols {
			if c == nil {
				continue
			}
			for range n {
				v, ok, err := c.next()
				if err != nil || !ok {
					return damaged(p.path, err)
				}
				b.cols[j] = append(b.cols[j], b.parquetValue(v, wants[j].kind, c))
			}
		}
		b.n = n
		left -= int64(n)
		if err := emit(b); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next value of the column.
func (c *leafColumn) next() (v parquet.Value, ok bool, err error) {
	for len(c.have) == 0 {
		if c.values == nil {
			if c.done {
				return v, false, nil
			}
			page, err := c.pages.ReadPage()
			if errors.Is(err, io.EOF) {
				c.done = true
				return v, false, nil
			}
			if err != nil {
				return v, false, err
			}
			c.values = page.Values()
		}
		n, err := c.values.ReadValues(c.buf)
		c.have = c.buf[:n]
		if errors.Is(err, io.EOF) {
			c.values = nil
		} else if err != nil {
			return v, false, err
		}
	}
	v, c.have = c.have[0], c.have[1:]
	return v, true, nil
}

func (b *batch) parquetValue(v parquet.Value, k kind, c *leafColumn) int64 {
	if v.IsNull() {
		return schema.Null
	}
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return b.fromInt(1, k, false)
		}
		return b.fromInt(0, k, false)
	case parquet.Int32:
		if c.unsigned {
			return b.fromInt(int64(uint32(v.Int32())), k, false)
		}
		return b.fromInt(int64(v.Int32()), k, false)
	case parquet.Int64:
		if c.unit > time.Nanosecond {
			return b.fromUnits(v.Int64(), c.unit, k)
		}
		return b.fromInt(v.Int64(), k, c.unsigned)
	case parquet.Float:
		return b.fromFloat(float64(v.Float()), k)
	case parquet.Double:
		return b.fromFloat(v.Double(), k)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return b.fromText(v.ByteArray(), k)
	}
	b.odd++
	return schema.Null
}

// fromUnits converts a time to nanoseconds.
func (b *batch) fromUnits(v int64, unit time.Duration, k kind) int64 {
	ns := v * int64(unit)
	if ns/int64(unit) != v {
		b.odd++
		return schema.Null
	}
	return b.fromInt(ns, k, false)
}

// fromInt converts an integer.
func (b *batch) fromInt(v int64, k kind, unsigned bool) int64 {
	switch {
	case k == real && unsigned:
		return int64(math.Float64bits(float64(uint64(v))))
	case k == real:
		return int64(math.Float64bits(float64(v)))
	case k == text && unsigned:
		return b.texts.put(strconv.AppendUint(nil, uint64(v), 10))
	case k == text:
		return b.texts.put(strconv.AppendInt(nil, v, 10))
	}
	return v
}
