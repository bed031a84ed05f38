package columnar

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/parquet-go/parquet-go"

	"tracelake/schema"
)

// leafValue is a value as a reader gives it back.
type leafValue struct {
	rep, def int
	text     string // "" where there is none
}

// wantLeaves returns what a reader must find in the leaves of a column.
func wantLeaves(c *schema.Column, rows int, v *Vector) [][]leafValue {
	leaves := make([][]leafValue, 1)
	if c.Type == schema.Intervals {
		leaves = make([][]leafValue, 2)
	}
	base := 0
	if c.Nullable {
		base = 1
	}
	put := func(rep, def int, texts ...string) {
		for i := range leaves {
			x := leafValue{rep: rep, def: def}
			if texts != nil {
				x.text = texts[i]
			}
			leaves[i] = append(leaves[i], x)
		}
	}
	k := 0
	for r := range rows {
		if v.Rows != nil && (k == len(v.Rows) || int(v.Rows[k]) != r) || v.Rows == nil && len(v.Vals)+len(v.Lists) == 0 {
			put(0, 0)
			continue
		}
		switch c.Type {
		case schema.Intervals:
			if len(v.Lists[k]) == 0 {
				put(0, base)
			}
			for i, x := range v.Lists[k] {
				put(min(i, 1), base+1, fmt.Sprint(x.OffsetNS), fmt.Sprint(x.DurNS))
			}
		case schema.String:
			put(0, base, "s"+v.Dict[v.Vals[k]])
		default:
			put(0, base, fmt.Sprint(v.Vals[k]))
		}
		k++
	}
	return leaves
}

func readLeaf(t *testing.T, c *schema.Column, chunk parquet.ColumnChunk) (out []leafValue) {
	t.Helper()
	pages := chunk.Pages()
	defer pages.Close()
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		vals := make([]parquet.Value, p.NumValues())
		n, err := p.Values().ReadValues(vals)
		if n != len(vals) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("%s: %d of %d values: %v", c.Name, n, len(vals), err)
		}
		for _, v := range vals {
			x := leafValue{rep: v.RepetitionLevel(), def: v.DefinitionLevel()}
			switch {
			case v.IsNull():
			case v.Kind() == parquet.ByteArray:
				x.text = "s" + string(v.ByteArray())
			case v.Kind() == parquet.Boolean:
				x.text = map[bool]string{false: "0", true: "1"}[v.Boolean()]
			default:
				x.text = fmt.Sprint(int64(v.Uint64()))
			}
			out = append(out, x)
		}
	}
}

// TestRoundTrip reads files back with parquet-go and compares every value and
// every level.
func TestRoundTrip(t *testing.T) {
	for seed, rows := range [][]int{{}, {0}, {1, 0, 7}, {8, 64, 1000}, {PageRows + 1, 20000}} {
		o := Options{Compression: Compression(seed % 3)}
		t.Run(fmt.Sprint(rows, o.Compression), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			var groups [][]Vector
			for _, n := range rows {
				groups = append(groups, makeRows(r, n))
			}
			path := writeParquet(t, &everyType, o, rows, groups)
			comparePath(t, path, rows, groups)
		})
	}
}

func comparePath(t *testing.T, path string, rows []int, groups [][]Vector) {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(in, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := f.Lookup("tracelake.table"); !ok || v != everyType.Name {
		t.Errorf("tracelake.table = %q", v)
	}
	g := 0
	for i, n := range rows {
		if n == 0 {
			continue
		}
		chunks := f.RowGroups()[g].ColumnChunks()
		g++
		at := 0
		for c := range everyType.Columns {
			decl, v := &everyType.Columns[c], &groups[i][c]
			if c == 0 {
				v = &Vector{Vals: make([]int64, n), Dict: []string{testID}}
			}
			for _, want := range wantLeaves(decl, n, v) {
				got := readLeaf(t, decl, chunks[at])
				at++
				if len(got) != len(want) {
					t.Errorf("row group %d, %s: %d values, want %d", i, decl.Name, len(got), len(want))
					continue
				}
				for k := range want {
					if got[k] != want[k] {
						t.Errorf("row group %d, %s, value %d: %.200v, want %.200v", i, decl.Name, k, got[k], want[k])
						break
					}
				}
			}
		}
	}
	if g != len(f.RowGroups()) {
		t.Errorf("%d row groups, want %d", len(f.RowGroups()), g)
	}
}
