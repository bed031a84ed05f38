package columnar

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"tracelake/internal/aside"
	"tracelake/schema"
)

var smallTable = schema.Table{Name: "small", Order: "start_ns", Columns: []schema.Column{
	{Name: "trace_id", Type: schema.String},
	{Name: "i", Type: schema.Int64},
	{Name: "s", Type: schema.String, Nullable: true},
	{Name: "b", Type: schema.Bool, Nullable: true},
	{Name: "l", Type: schema.Intervals, Nullable: true},
}}

// TestBadVectors wants an error that names table and column from both writers
// for whatever a caller may hand in, and that the writer stays usable.
func TestBadVectors(t *testing.T) {
	good := func() []Vector {
		return []Vector{{}, {Vals: []int64{1, 2}}, {}, {}, {}}
	}
	cases := []struct {
		name string
		col  int
		v    Vector
		want string
	}{
		{"too few values", 1, Vector{Vals: []int64{1}}, "1 values for 2 rows"},
		{"too many values", 1, Vector{Vals: []int64{1, 2, 3}}, "3 values for 2 rows"},
		{"missing rows", 1, Vector{Rows: []int32{1}, Vals: []int64{1}}, "must have one"},
		{"missing column", 1, Vector{}, "must have one"},
		{"rows without values", 2, Vector{Rows: []int32{0, 1}}, "0 values for 2 row numbers"},
		{"row twice", 2, Vector{Rows: []int32{1, 1}, Vals: []int64{0, 0}, Dict: []string{""}}, "row number 1 after 1"},
		{"falling rows", 2, Vector{Rows: []int32{1, 0}, Vals: []int64{0, 0}, Dict: []string{""}}, "row number 0 after 1"},
		{"negative row", 2, Vector{Rows: []int32{-1}, Vals: []int64{0}, Dict: []string{""}}, "row number -1"},
		{"row outside", 2, Vector{Rows: []int32{2}, Vals: []int64{0}, Dict: []string{""}}, "row number 2 of 2"},
		{"no dictionary", 2, Vector{Vals: []int64{0, 0}}, "dictionary of 0"},
		{"position outside", 2, Vector{Vals: []int64{0, 1}, Dict: []string{""}}, "dictionary of 1"},
		{"negative position", 2, Vector{Vals: []int64{0, math.MinInt64}, Dict: []string{""}}, "dictionary of 1"},
		{"not UTF-8", 2, Vector{Vals: []int64{0, 0}, Dict: []string{"a\xff"}}, "not UTF-8"},
		{"no boolean", 3, Vector{Vals: []int64{0, 2}}, "neither 0 nor 1"},
		{"negative boolean", 3, Vector{Vals: []int64{-1, 1}}, "neither 0 nor 1"},
		{"lists", 4, Vector{Lists: [][]schema.Interval{{}}}, "1 values for 2 rows"},
		{"lists without rows", 4, Vector{Rows: []int32{1}, Vals: []int64{1}}, "0 values for 1 row numbers"},
	}
	for format := Parquet; format <= Arrow; format++ {
		w, err := format.Create(discard{}, &smallTable, testID, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			cols := good()
			cols[c.col] = c.v
			err := w.Append(2, cols)
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "table small, column "+smallTable.Columns[c.col].Name) {
				t.Errorf("%s, %s: error %v, want %q", format, c.name, err, c.want)
			}
		}
		if err := w.Append(2, good()[:4]); err == nil {
			t.Errorf("%s: no error for a missing column", format)
		}
		if err := w.Append(-1, good()); err == nil {
			t.Errorf("%s: no error for a negative number of rows", format)
		}
		if err := w.Append(2, good()); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if _, err := w.Close("short"); err == nil {
			t.Errorf("%s: no error for a bad trace ID", format)
		}
		if s, err := w.Close(testID); err != nil || s.Rows != 2 {
			t.Errorf("%s: %+v, %v", format, s, err)
		}
		if err := w.Append(2, good()); err == nil {
			t.Errorf("%s: no error behind Close", format)
		}
	}
}

// TestColumnByColumn makes the same file from single columns, from other
// encoders and from encoders used before.
func TestColumnByColumn(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	rows := []int{3000, 0, 500}
	var groups [][]Vector
	for _, n := range rows {
		groups = append(groups, makeRows(r, n))
	}
	o := Options{Metadata: map[string]string{"k": "v"}}
	want, err := os.ReadFile(writeParquet(t, &everyType, o, rows, groups))
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/x"
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	f, err := Create(out, &everyType, o)
	if err != nil {
		t.Fatal(err)
	}
	e := NewEncoder(&everyType, o)
	spare := aside.New(func() (*os.File, error) { return os.Create(t.TempDir() + "/aside") })
	defer spare.Close()
	for g, n := range rows {
		cols := make([]*Column, len(everyType.Columns))
		for i := len(cols) - 1; i >= 0; i-- {
			if cols[i], err = e.EncodeColumn(n, i, &groups[g][i]); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				continue
			}
			if cols[i].Unload(spare); cols[i].Bytes() != 0 {
				t.Fatalf("%d bytes left", cols[i].Bytes())
			}
		}
		c, err := NewChunk(&everyType, n, cols)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Append(c); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := f.Close(testID, nil); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes that differ from the %d of whole row groups", len(got), len(want))
	}
	one, err := e.EncodeColumn(5, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := e.EncodeColumn(5, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	closed.Unload(spare)
	spare.Close()
	if err := closed.Load(); err == nil {
		t.Error("no error for a file that cannot be read")
	}
	before := one.Bytes()
	if one.Unload(spare); one.Bytes() != before {
		t.Errorf("a file that cannot be written took %d bytes", before-one.Bytes())
	}
	if _, err := NewChunk(&everyType, 5, make([]*Column, len(everyType.Columns))); err == nil {
		t.Error("no error for columns that are missing")
	}
	if _, err := NewChunk(&schema.Table{Name: "x", Columns: everyType.Columns[:1]}, 5, []*Column{one}); err == nil {
		t.Error("no error for a column of another table")
	}
}

// TestSteadyState makes sure that nothing is allocated per value.
func TestSteadyState(t *testing.T) {
	table, cols := gpuLike(20_000)
	e := NewEncoder(table, Options{})
	got := testing.AllocsPerRun(5, func() {
		c, err := e.Encode(20_000, cols)
		if err != nil {
			t.Fatal(err)
		}
		c.release()
	})
	if got > 1000 {
		t.Errorf("%v allocations per row group", got)
	}
}

func TestStoredStrings(t *testing.T) {
	top := "\U0010ffff"
	cases := []struct{ lo, hi, min, max string }{
		{"", "", "", ""},
		{"a", "b", "a", "b"},
		{strings.Repeat("a", 65), strings.Repeat("a", 65), strings.Repeat("a", 64), strings.Repeat("a", 63) + "b"},
		{strings.Repeat("é", 40), strings.Repeat("é", 40), strings.Repeat("é", 32), strings.Repeat("é", 31) + "ê"},
		{"a" + strings.Repeat("é", 40), "a" + strings.Repeat(top, 20), "a" + strings.Repeat("é", 31), "b"},
		{strings.Repeat(top, 20), strings.Repeat(top, 20), strings.Repeat(top, 16), strings.Repeat(top, 20)},
		{"x", strings.Repeat("\ud7ff", 30), "x", strings.Repeat("\ud7ff", 20) + "\ue000"},
	}
	for _, c := range cases {
		b := storedStrings(c.lo, c.hi)
		if string(b.min) != c.min || string(b.max) != c.max {
			t.Errorf("%.80q to %.80q: %.80q to %.80q", c.lo, c.hi, b.min, b.max)
		}
		if b.minExact != (c.lo == c.min) || b.maxExact != (c.hi == c.max) {
			t.Errorf("%.80q to %.80q: exact %v, %v", c.lo, c.hi, b.minExact, b.maxExact)
		}
	}
}
