package columnar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"tracelake/schema"
)

const otherID = "fedcba9876543210"

// TestMerge merges two files and compares every value; then it takes one of
// them out again.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	rowsA, rowsB := []int{1000, 1, 300}, []int{70000, 5}
	var a, b [][]Vector
	for _, n := range rowsA {
		a = append(a, makeRows(r, n))
	}
	for _, n := range rowsB {
		b = append(b, makeRows(r, n))
	}
	pathA := writeParquet(t, &everyType, Options{}, rowsA, a)
	pathB := writeTrace(t, otherID, &everyType, Options{Compression: Snappy}, rowsB, b)

	merged := filepath.Join(t.TempDir(), "merged.parquet")
	counts := merge(t, merged, Source{Path: pathA}, Source{Path: pathB})
	if counts[testID] != 1301 || counts[otherID] != 70005 || len(counts) != 2 {
		t.Fatal(counts)
	}
	rows := append(append([]int{}, rowsA...), rowsB...)
	groups := append(append([][]Vector{}, a...), b...)
	ids := []string{testID, testID, testID, otherID, otherID}
	// The row groups are others, the rows are the same.
	if got, want := fileText(t, merged), rowsText(rows, groups, ids); got != want {
		t.Fatal("merged rows differ")
	}
	for _, id := range []string{testID, otherID} {
		alone := filepath.Join(t.TempDir(), "alone.parquet")
		counts := merge(t, alone, Source{Path: merged, Keep: map[string]bool{id: true}})
		if len(counts) != 1 {
			t.Fatal(counts)
		}
		want := rowsText(rowsA, a, ids[:3])
		if id == otherID {
			want = rowsText(rowsB, b, ids[3:])
		}
		if fileText(t, alone) != want {
			t.Fatalf("rows of %s alone differ", id)
		}
	}
}

func merge(t *testing.T, path string, from ...Source) map[string]int64 {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	counts, size, err := Merge(out, &everyType, from, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := out.Stat(); err != nil || st.Size() != size {
		t.Fatal(st, size, err)
	}
	return counts
}

// fileText returns the rows of a file as lines, column by column.
func fileText(t *testing.T, path string) string {
	t.Helper()
	var all []string
	err := withFile(path, func(f *parquet.File) error {
		leaves := make([]strings.Builder, len(f.RowGroups()[0].ColumnChunks()))
		for _, g := range f.RowGroups() {
			leaf := 0
			for c := range everyType.Columns {
				for range leavesOf(&everyType.Columns[c]) {
					for _, x := range readLeaf(t, &everyType.Columns[c], g.ColumnChunks()[leaf]) {
						fmt.Fprintln(&leaves[leaf], x)
					}
					leaf++
				}
			}
		}
		for i := range leaves {
			all = append(all, leaves[i].String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(all)
}

func leavesOf(c *schema.Column) int {
	if c.Type == schema.Intervals {
		return 2
	}
	return 1
}

func rowsText(rows []int, groups [][]Vector, ids []string) string {
	var leaves []string
	for c := range everyType.Columns {
		decl := &everyType.Columns[c]
		text := make([]strings.Builder, leavesOf(decl))
		for g, n := range rows {
			v := &groups[g][c]
			if c == 0 {
				v = &Vector{Vals: make([]int64, n), Dict: []string{ids[g]}}
			}
			for i, leaf := range wantLeaves(decl, n, v) {
				for _, x := range leaf {
					fmt.Fprintln(&text[i], x)
				}
			}
		}
		for i := range text {
			leaves = append(leaves, text[i].String())
		}
	}
	return fmt.Sprint(leaves)
}

// TestMergeRefuses: files that cannot be merged give an error that names them
// and never a file that looks whole.
func TestMergeRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	path := writeParquet(t, &everyType, Options{}, []int{500}, [][]Vector{makeRows(r, 500)})
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, _, err := Merge(out, &schema.TableDiagnostics, []Source{{Path: path}}, Options{}); !errors.Is(err, ErrOtherColumns) {
		t.Error(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range 400 {
		bad := append([]byte{}, data...)
		if i < 100 {
			bad = bad[:len(bad)*i/100]
		} else {
			for range 3 {
				bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
			}
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Merge(out, &everyType, []Source{{Path: path}}, Options{}); err != nil {
			refused++
		}
	}
	if refused < 100 {
		t.Error("only", refused, "damaged files were refused")
	}
}
