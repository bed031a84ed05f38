package columnar

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"tracelake/internal/regular"
	"tracelake/schema"
)

// mergedRows is how many rows a row group of a merged file has at least, save
// for the last.
const mergedRows = 1 << 16

// Source is a file that Merge reads.
type Source struct {
	Path string
	Keep map[string]bool // trace IDs whose rows are taken; nil takes all
}

// ErrOtherColumns means that a file does not have the columns of the table as
// this program declares them. Typically an earlier version wrote it.
var ErrOtherColumns = errors.New("columnar: the file has other columns")

// Merge writes the rows of Parquet files of one table into one, in the order
// of the files, and returns how many rows each trace has there. In memory it
// holds a row group of the files and one of its own.
func Merge(w io.WriterAt, t *schema.Table, from []Source, o Options) (rows map[string]int64, bytes int64, err error) {
	out, err := Create(w, t, o)
	if err != nil {
		return nil, 0, err
	}
	m := &merger{out: out, enc: NewEncoder(t, o), batch: newBatch(t), rows: map[string]int64{}}
	for _, s := range from {
		if err := m.file(s); err != nil {
			return nil, 0, err
		}
	}
	if err := m.flush(); err != nil {
		return nil, 0, err
	}
	_, bytes, err = out.Close("", nil)
	return m.rows, bytes, err
}

type merger struct {
	out   *File
	enc   *Encoder
	batch *batch
	rows  map[string]int64
}

func (m *merger) file(s Source) error {
	return withFile(s.Path, func(f *parquet.File) error {
		if !sameColumns(f, m.batch.t) {
			return ErrOtherColumns
		}
		for i, g := range f.RowGroups() {
			if err := m.group(g, f.Metadata().RowGroups[i].Columns, s.Keep); err != nil {
				return err
			}
		}
		return nil
	})
}

// withFile opens a Parquet file for a function. Errors name the file.
func withFile(path string, use func(*parquet.File) error) (err error) {
	in, err := regular.Open(path)
	if err != nil {
		return err // names it
	}
	defer in.Close()
	// The library trusts what a file says of its pages.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("columnar: damaged file: %v", r)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	f, err := parquet.OpenFile(in, st.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	return use(f)
}

// group adds a row group, whose column chunks the footer describes.
func (m *merger) group(g parquet.RowGroup, about []format.ColumnChunk, keep map[string]bool) error {
	t, chunks := m.batch.t, g.ColumnChunks()
	rows := int(g.NumRows())
	n := 0           // rows that are taken
	var taken []bool // nil: all
	for c, leaf := 0, 0; c < len(t.Columns); c++ {
		var v Vector
		var err error
		switch meta := &about[leaf].MetaData; {
		case t.Columns[c].Type == schema.Intervals:
			v, err = readLists(t.Columns[c].Nullable, chunks[leaf], chunks[leaf+1])
			leaf += 2
		case meta.Statistics.NullCount == meta.NumValues:
			v.Rows = []int32{} // most columns of most files
			leaf++
		default:
			v, err = readColumn(t.Columns[c].Type, chunks[leaf])
			leaf++
		}
		if err == nil {
			x := cells{decl: &t.Columns[c], rows: rows, v: &v}
			_, err = x.checkAll()
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", t.Columns[c].Name, err)
		}
		if c == 0 {
			taken, n = m.count(&v, keep)
		}
		m.batch.add(c, &v, taken)
	}
	if m.batch.rows += n; m.batch.rows >= mergedRows {
		return m.flush()
	}
	return nil
}

// count notes the rows of each trace and says which rows are taken, and how
// many.
func (m *merger) count(ids *Vector, keep map[string]bool) (taken []bool, n int) {
	if keep != nil {
		taken = make([]bool, len(ids.Vals))
	}
	for r, p := range ids.Vals {
		id := ids.Dict[p]
		if keep == nil || keep[id] {
			m.rows[id]++
			n++
			if taken != nil {
				taken[r] = true
			}
		}
	}
	return taken, n
}

func (m *merger) flush() error {
	if m.batch.rows == 0 {
		return nil
	}
	rows, cols := m.batch.take()
	c, err := m.enc.Encode(rows, cols)
	if err != nil {
		return err
	}
	return m.out.Append(c)
}

// batch collects rows from several row groups.
type batch struct {
	t    *schema.Table
	rows int
	cols []Vector
	dict []words
}

func newBatch(t *schema.Table) *batch {
	b := &batch{t: t}
	b.clear()
	return b
}

func (b *batch) clear() {
	b.rows = 0
	b.cols = make([]Vector, len(b.t.Columns))
	b.dict = make([]words, len(b.t.Columns))
	for c := range b.cols {
		b.cols[c].Rows = []int32{}
		b.dict[c] = words{}
	}
}

// add appends the taken rows of one column.
func (b *batch) add(col int, v *Vector, taken []bool) {
	out := &b.cols[col]
	isText, isList := b.t.Columns[col].Type == schema.String, b.t.Columns[col].Type == schema.Intervals
	var place []int64 // of the strings of v in the dictionary of the batch, plus one
	if isText {
		place = make([]int64, len(v.Dict))
	}
	at := newPlaces(b.rows, taken)
	for k := range max(len(v.Vals), len(v.Lists)) {
		r := k
		if v.Rows != nil {
			r = int(v.Rows[k])
		}
		row, ok := at.of(r)
		if !ok {
			continue
		}
		out.Rows = append(out.Rows, row)
		switch {
		case isList:
			out.Lists = append(out.Lists, v.Lists[k])
		case isText:
			p := v.Vals[k]
			if place[p] == 0 {
				place[p] = b.dict[col].place(out, []byte(v.Dict[p])) + 1
			}
			out.Vals = append(out.Vals, place[p]-1)
		default:
			out.Vals = append(out.Vals, v.Vals[k])
		}
	}
}

// places numbers the taken rows of a row group, asked for in ascending order.
type places struct {
	next  int32 // number of the next taken row
	seen  int   // rows looked at
	taken []bool
}

func newPlaces(first int, taken []bool) places { return places{next: int32(first), taken: taken} }

func (p *places) of(r int) (int32, bool) {
	if p.taken == nil {
		return p.next + int32(r), true
	}
	for ; p.seen < r; p.seen++ {
		if p.taken[p.seen] {
			p.next++
		}
	}
	return p.next, p.taken[r]
}

// words are the places of strings in the dictionary of a column.
type words map[string]int64

// place returns the place of a string, which may be new.
func (w words) place(v *Vector, text []byte) int64 {
	p, ok := w[string(text)]
	if !ok {
		p = int64(len(v.Dict))
		s := string(text)
		w[s] = p
		v.Dict = append(v.Dict, s)
	}
	return p
}

// take returns the rows and starts afresh.
func (b *batch) take() (int, []Vector) {
	rows, cols := b.rows, b.cols
	for c := range cols {
		if len(cols[c].Rows) == rows {
			cols[c].Rows = nil
		}
	}
	b.clear()
	return rows, cols
}

// readColumn reads a column chunk of values.
func readColumn(t schema.Type, chunk parquet.ColumnChunk) (v Vector, err error) {
	dict := words{}
	v.Rows = []int32{}
	row := int32(0)
	err = eachValue(chunk, func(x parquet.Value) {
		if !x.IsNull() {
			v.Rows = append(v.Rows, row)
			v.Vals = append(v.Vals, plainValue(t, x, dict, &v))
		}
		row++
	})
	if int(row) == len(v.Rows) {
		v.Rows = nil
	}
	return v, err
}

func plainValue(t schema.Type, x parquet.Value, dict words, v *Vector) int64 {
	switch t {
	case schema.Bool:
		if x.Boolean() {
			return 1
		}
		return 0
	case schema.String:
		return dict.place(v, x.ByteArray())
	}
	return int64(x.Uint64()) // an integer, or the bits of a float64
}

// readLists reads the two column chunks of a list of intervals.
func readLists(nullable bool, offsets, durs parquet.ColumnChunk) (v Vector, err error) {
	v.Rows = []int32{}
	row := int32(-1)
	var flat []schema.Interval
	var lens []int32
	stray := false // an interval outside of any list
	err = eachValue(offsets, func(x parquet.Value) {
		if x.RepetitionLevel() == 0 {
			row++
			if !nullable || x.DefinitionLevel() > 0 {
				v.Rows = append(v.Rows, row)
				lens = append(lens, 0)
			}
		}
		switch {
		case x.IsNull():
		case len(lens) == 0 || v.Rows[len(lens)-1] != row:
			stray = true
		default:
			flat = append(flat, schema.Interval{OffsetNS: int64(x.Uint64())})
			lens[len(lens)-1]++
		}
	})
	if stray && err == nil {
		err = errors.New("an interval outside of any list")
	}
	if err != nil {
		return v, err
	}
	k := 0
	err = eachValue(durs, func(x parquet.Value) {
		if !x.IsNull() {
			if k < len(flat) {
				flat[k].DurNS = int64(x.Uint64())
			}
			k++
		}
	})
	if err == nil && k != len(flat) {
		err = fmt.Errorf("lists with %d offsets and %d durations", len(flat), k)
	}
	for _, n := range lens {
		v.Lists = append(v.Lists, flat[:n:n])
		flat = flat[n:]
	}
	return v, err
}

// eachValue calls f for every value of a column chunk, nulls included.
func eachValue(chunk parquet.ColumnChunk, f func(parquet.Value)) error {
	pages := chunk.Pages()
	defer pages.Close()
	buf := make([]parquet.Value, 4096)
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		vals := p.Values()
		for {
			n, err := vals.ReadValues(buf)
			for _, x := range buf[:n] {
				f(x)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(p)
	}
}

// sameColumns reports whether a file has the columns that a table declares.
func sameColumns(f *parquet.File, t *schema.Table) bool {
	want, _ := schemaElements(t)
	return slices.EqualFunc(f.Metadata().Schema, want, func(a, b format.SchemaElement) bool {
		return a.Name == b.Name && a.Type == b.Type && a.RepetitionType == b.RepetitionType
	})
}

// ReadTable returns the declaration of a table that a file holds, for tables
// that this program does not declare.
func ReadTable(path, name string) (*schema.Table, error) {
	t := &schema.Table{Name: name}
	return t, withFile(path, func(f *parquet.File) error {
		for _, e := range f.Metadata().Schema[1:] {
			c := schema.Column{Name: e.Name, Nullable: e.RepetitionType.V == format.Optional}
			switch e.Type.V {
			case format.ByteArray:
				c.Type = schema.String
			case format.Double:
				c.Type = schema.Float64
			case format.Boolean:
				c.Type = schema.Bool
			}
			t.Columns = append(t.Columns, c)
		}
		if !sameColumns(f, t) || len(t.Columns) == 0 || t.Columns[0].Name != schema.TraceIDColumn {
			return ErrOtherColumns
		}
		return nil
	})
}
