package columnar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"tracelake/schema"
)

// python returns the interpreter that has pyarrow, pandas, polars and duckdb.
func python(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("TRACELAKE_PYTHON"); p != "" {
		return p
	}
	p, err := filepath.Abs("../../.venv/bin/python")
	if err == nil {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	const why = "NOT TESTED against pyarrow, pandas, polars and DuckDB: set TRACELAKE_PYTHON or make .venv in the root of the repository"
	fmt.Fprintln(os.Stderr, why)
	t.Skip(why)
	return ""
}

// truth is what the readers must find in a file. Doubles are given by their
// bits, because JSON has no NaN.
type truth struct {
	File     string
	Rows     int
	Types    map[string]string
	Required map[string]bool
	Columns  map[string][]any
}

func makeTruth(file string, rows []int, groups [][]Vector) truth {
	x := truth{File: file, Types: map[string]string{}, Required: map[string]bool{}, Columns: map[string][]any{}}
	for _, n := range rows {
		x.Rows += n
	}
	for i := range everyType.Columns {
		c := &everyType.Columns[i]
		x.Types[c.Name], x.Required[c.Name] = c.Type.String(), !c.Nullable
		values := []any{}
		for g, n := range rows {
			v := groups[g][i]
			if i == 0 {
				v = Vector{Vals: make([]int64, n), Dict: []string{testID}}
			}
			values = append(values, cellValues(c, n, &v)...)
		}
		x.Columns[c.Name] = values
	}
	return x
}

func cellValues(c *schema.Column, rows int, v *Vector) []any {
	out := make([]any, rows)
	one := &cells{decl: c, rows: rows, v: v}
	if one.check() != nil {
		panic("not a valid column")
	}
	one.each(func(r, k int) {
		switch c.Type {
		case schema.String:
			out[r] = v.Dict[v.Vals[k]]
		case schema.Bool:
			out[r] = v.Vals[k] == 1
		case schema.Float64:
			out[r] = strconv.FormatUint(uint64(v.Vals[k]), 10)
		case schema.Intervals:
			list := [][2]int64{}
			for _, x := range v.Lists[k] {
				list = append(list, [2]int64{x.OffsetNS, x.DurNS})
			}
			out[r] = list
		default:
			out[r] = v.Vals[k]
		}
	})
	return out
}

// TestReaders has the engines that people use read files of both formats.
func TestReaders(t *testing.T) {
	bin := python(t)
	cases := []struct {
		format Format
		comp   Compression
		rows   []int
	}{
		{Parquet, Zstd, []int{PageRows + 500, 3, 4000}},
		{Parquet, Snappy, []int{900, 1, 17, 2500}},
		{Parquet, None, []int{64, 6000}},
		{Parquet, Zstd, nil},
		{Arrow, Zstd, []int{9000, 5, 1}},
		{Arrow, None, []int{800}},
		{Arrow, None, nil},
	}
	dir := t.TempDir()
	var all []truth
	for i, c := range cases {
		r := rand.New(rand.NewPCG(uint64(i), 99))
		var groups [][]Vector
		for _, n := range c.rows {
			groups = append(groups, makeRows(r, n))
		}
		name := fmt.Sprintf("%d-%s.%s", i, c.comp, c.format)
		writeTable(t, filepath.Join(dir, name), c.format, c.comp, c.rows, groups)
		all = append(all, makeTruth(name, c.rows, groups))
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "truth.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "testdata/readers.py", dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	t.Logf("%s", out.Bytes())
}

func writeTable(t *testing.T, path string, format Format, comp Compression, rows []int, groups [][]Vector) {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := format.Create(out, &everyType, testID, Options{Compression: comp})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for i, cols := range groups {
		if err := w.Append(rows[i], cols); err != nil {
			t.Fatal(err)
		}
		total += rows[i]
	}
	stats, err := w.Close(testID)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := out.Stat(); info.Size() != stats.Bytes || stats.Rows != int64(total) {
		t.Fatalf("Close returned %+v; want %d rows, %d bytes", stats, total, info.Size())
	}
}
