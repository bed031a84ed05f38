package columnar

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"tracelake/schema"
)

// listsOnly is a table whose damage is likely to hit lists.
var listsOnly = schema.Table{Name: "lists", Columns: []schema.Column{
	{Name: "trace_id", Type: schema.String},
	{Name: "l_req", Type: schema.Intervals},
	{Name: "l_opt", Type: schema.Intervals, Nullable: true},
}}

// FuzzMerge merges a whole file and a damaged one, and reads the declaration
// of the damaged one: either an error names that file, or the result is a file
// that merges again with the same rows.
func FuzzMerge(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 1))
	tables := []*schema.Table{&everyType, &listsOnly}
	whole := make([]string, len(tables))
	for i, t := range tables {
		for _, c := range []Compression{Zstd, Snappy} {
			cols := makeRows(r, 9)
			if t == &listsOnly {
				cols = []Vector{{}, {Lists: make([][]schema.Interval, 9)}, {}}
				cols[1].Lists[3] = []schema.Interval{{OffsetNS: 1, DurNS: math.MaxInt64}, {OffsetNS: 2}}
			}
			path := writeParquet(f, t, Options{Compression: c}, []int{9}, [][]Vector{cols})
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			whole[i] = path
			f.Add(uint8(i), data)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		if len(data) > 1<<16 {
			t.Skip()
		}
		i := int(which) % len(tables)
		dir := t.TempDir()
		damaged, merged := filepath.Join(dir, "damaged.parquet"), filepath.Join(dir, "merged.parquet")
		if err := os.WriteFile(damaged, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, tableErr := ReadTable(damaged, "user")
		named(t, tableErr)
		counts, err := mergeTo(merged, tables[i], whole[i], damaged)
		if err != nil {
			named(t, err)
			return
		}
		var total int64
		for _, n := range counts {
			total += n
		}
		again, err := mergeTo(filepath.Join(dir, "again.parquet"), tables[i], merged)
		if err != nil {
			t.Fatalf("what was merged cannot be read: %v", err)
		}
		for id, n := range counts {
			if again[id] != n {
				t.Fatalf("%d rows of %q, then %d", n, id, again[id])
			}
		}
		err = withFile(merged, func(f *parquet.File) error {
			if f.NumRows() != total {
				t.Fatalf("%d rows in the file, %d counted", f.NumRows(), total)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// named checks that an error says which file is damaged.
func named(t *testing.T, err error) {
	t.Helper()
	if err != nil && !strings.Contains(err.Error(), "damaged.parquet") {
		t.Fatalf("the error does not name the file: %v", err)
	}
}

func mergeTo(path string, table *schema.Table, from ...string) (map[string]int64, error) {
	out, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	sources := make([]Source, len(from))
	for i, f := range from {
		sources[i].Path = f
	}
	counts, _, err := Merge(out, table, sources, Options{})
	return counts, err
}
