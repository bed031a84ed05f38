package columnar

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/schema"
)

// everyType has a required and a nullable column of every type.
var everyType = schema.Table{
	Name: "every_type", Order: "start_ns, then nothing",
	Columns: []schema.Column{
		{Name: "trace_id", Type: schema.String},
		{Name: "start_ns", Type: schema.Int64, Nullable: true},
		{Name: "i_req", Type: schema.Int64},
		{Name: "i_opt", Type: schema.Int64, Nullable: true},
		{Name: "i_few", Type: schema.Int64, Nullable: true},
		{Name: "f_req", Type: schema.Float64},
		{Name: "f_opt", Type: schema.Float64, Nullable: true},
		{Name: "f_nan", Type: schema.Float64, Nullable: true},
		{Name: "s_req", Type: schema.String},
		{Name: "s_opt", Type: schema.String, Nullable: true},
		{Name: "s_many", Type: schema.String, Nullable: true},
		{Name: "b_req", Type: schema.Bool},
		{Name: "b_opt", Type: schema.Bool, Nullable: true},
		{Name: "l_req", Type: schema.Intervals},
		{Name: "l_opt", Type: schema.Intervals, Nullable: true},
		{Name: "s_null", Type: schema.String, Nullable: true},
		{Name: "i_null", Type: schema.Int64, Nullable: true},
		{Name: "l_null", Type: schema.Intervals, Nullable: true},
	},
}

const testID = "0123456789abcdef"

// oddStrings are texts that have gone wrong somewhere.
var oddStrings = []string{
	"", " ", "\x00", "a", "é", "日本語", "\U0001f600\U0010ffff", "quote\"'\\\n\t", "NaN", "null",
	strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("é", 200),
	strings.Repeat("\U0010ffff", 40), "\ud7ff" + strings.Repeat("\ud7ff", 40), strings.Repeat("long ", 200),
}

// makeRows returns random rows for everyType.
func makeRows(r *rand.Rand, rows int) []Vector {
	cols := make([]Vector, len(everyType.Columns))
	for i := 1; i < len(cols); i++ {
		c, v := &everyType.Columns[i], &cols[i]
		switch {
		case strings.HasSuffix(c.Name, "_null"):
			continue // holds nothing at all
		case c.Name == "start_ns":
			for k := range rows * 9 / 10 {
				v.Rows = append(v.Rows, int32(k))
			}
		case c.Nullable:
			v.Rows = pickRows(r, rows)
		}
		n := rows
		if c.Nullable {
			n = len(v.Rows)
		}
		fill(r, c, v, n)
	}
	return cols
}

// pickRows returns a random part of the rows: none, few, most or all, and
// sometimes in blocks.
func pickRows(r *rand.Rand, rows int) []int32 {
	picked := []int32{}
	share, block := []float64{0, 0.01, 0.5, 0.99, 1}[r.IntN(5)], r.IntN(2) == 0
	on := false
	for k := range rows {
		if !block || k%300 == 0 {
			on = r.Float64() < share
		}
		if on {
			picked = append(picked, int32(k))
		}
	}
	return picked
}

func fill(r *rand.Rand, c *schema.Column, v *Vector, n int) {
	t := 1_700_000_000_000_000_000 + r.Int64N(1e17)
	seen := map[string]int64{}
	intern := func(s string) int64 {
		p, ok := seen[s]
		if !ok {
			p = int64(len(v.Dict))
			seen[s], v.Dict = p, append(v.Dict, s)
		}
		return p
	}
	for range n {
		switch {
		case c.Name == "start_ns":
			t += r.Int64N(5000)
			v.Vals = append(v.Vals, t)
		case c.Name == "i_few":
			v.Vals = append(v.Vals, []int64{0, 7, -1, math.MinInt64, math.MaxInt64}[r.IntN(5)])
		case c.Type == schema.Int64:
			v.Vals = append(v.Vals, int64(r.Uint64())>>uint(r.IntN(64)))
		case c.Name == "f_nan":
			v.Vals = append(v.Vals, int64(math.Float64bits([]float64{math.NaN(), 1, -3}[r.IntN(3)])))
		case c.Name == "f_opt":
			v.Vals = append(v.Vals, int64(math.Float64bits([]float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 1e308, 5e-324}[r.IntN(6)])))
		case c.Type == schema.Float64:
			v.Vals = append(v.Vals, int64(math.Float64bits(r.NormFloat64())))
		case c.Name == "s_many":
			v.Vals = append(v.Vals, intern(strings.Repeat("{é}", r.IntN(20))+string(rune('a'+r.IntN(26)))+strings.Repeat("z", r.IntN(50))+string(rune(0x4e00+r.IntN(20000)))))
		case c.Type == schema.String:
			v.Vals = append(v.Vals, intern(oddStrings[min(r.IntN(len(oddStrings)), r.IntN(len(oddStrings)+200))]))
		case c.Type == schema.Bool:
			v.Vals = append(v.Vals, int64(r.IntN(2)))
		case c.Type == schema.Intervals:
			var list []schema.Interval
			for range listLen(r) {
				list = append(list, schema.Interval{OffsetNS: r.Int64() - r.Int64(), DurNS: r.Int64N(1000)})
			}
			v.Lists = append(v.Lists, list)
		}
	}
}

// listLen is mostly 0 to 2, and very rarely long.
func listLen(r *rand.Rand) int {
	if r.IntN(5000) == 0 {
		return 3000
	}
	return r.IntN(3)
}

// writeParquet writes row groups of one trace to a new file and returns its path.
func writeParquet(t testing.TB, table *schema.Table, o Options, rows []int, groups [][]Vector) string {
	t.Helper()
	return writeTrace(t, testID, table, o, rows, groups)
}

func writeTrace(t testing.TB, id string, table *schema.Table, o Options, rows []int, groups [][]Vector) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.parquet")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	f, err := Create(out, table, o)
	if err != nil {
		t.Fatal(err)
	}
	e := NewEncoder(table, o)
	total := 0
	for i, cols := range groups {
		c, err := e.Encode(rows[i], cols)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Append(c); err != nil {
			t.Fatal(err)
		}
		total += rows[i]
	}
	n, bytes, err := f.Close(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := out.Stat(); info.Size() != bytes || n != int64(total) {
		t.Fatalf("Close returned %d rows, %d bytes; want %d, %d", n, bytes, total, info.Size())
	}
	return path
}
