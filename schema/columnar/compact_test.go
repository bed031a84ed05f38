package columnar

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tracelake/schema"
)

// sameAsLibrary reads a struct of a file with the library and asserts that the
// library writes it as it stands there. It returns how long it is.
func sameAsLibrary[T any](t *testing.T, what string, b []byte) (T, int) {
	t.Helper()
	var p thrift.CompactProtocol
	var x T
	if err := thrift.NewDecoder(p.NewReader(bytes.NewReader(b))).Decode(&x); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	want, err := thrift.Marshal(&p, &x)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !bytes.HasPrefix(b, want) {
		t.Fatalf("%s: the library writes\n%x, not\n%x", what, want, b[:min(len(b), len(want))])
	}
	return x, len(want)
}

// TestCompact takes every header, index and footer of files apart.
func TestCompact(t *testing.T) {
	many := slices.Repeat([]int{9}, 17) // row groups, more than fit the short form of a list
	var groups [][]Vector
	for _, n := range many {
		groups = append(groups, makeRows(rand.New(rand.NewPCG(1, 1)), n))
	}
	checkCompact(t, &everyType, many, groups)

	times := schema.Table{Name: "times", Order: "start_ns", Columns: everyType.Columns[:2]}
	starts := make([]int64, PageRows*16+3) // pages, as many
	for i := range starts {
		starts[i] = int64(i) * 1000
	}
	checkCompact(t, &times, []int{len(starts)}, [][]Vector{{{}, {Vals: starts}}})
}

func checkCompact(t *testing.T, table *schema.Table, rows []int, groups [][]Vector) {
	path := writeParquet(t, table, Options{Metadata: map[string]string{"empty": ""}}, rows, groups)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(b) - 8
	at := end - int(binary.LittleEndian.Uint32(b[end:]))
	m, n := sameAsLibrary[fileMetaData](t, "footer", b[at:end])
	if at+n != end || len(m.RowGroups) != len(rows) || m.RowGroups[0].SortingColumns == nil {
		t.Fatalf("a footer of %d bytes, %d of them read, for %d row groups", end-at, n, len(m.RowGroups))
	}
	headers, indexes := 0, 0
	for _, g := range m.RowGroups {
		for i := range g.Columns {
			c := &g.Columns[i]
			headers += checkHeaders(t, b, &c.MetaData)
			_, n := sameAsLibrary[format.OffsetIndex](t, "offset index", b[c.OffsetIndexOffset:])
			if n != int(c.OffsetIndexLength) {
				t.Fatalf("an offset index of %d bytes has %d", n, c.OffsetIndexLength)
			}
			if c.ColumnIndexOffset == 0 {
				continue
			}
			indexes++
			if _, n = sameAsLibrary[format.ColumnIndex](t, "column index", b[c.ColumnIndexOffset:]); n != int(c.ColumnIndexLength) {
				t.Fatalf("a column index of %d bytes has %d", n, c.ColumnIndexLength)
			}
		}
	}
	if headers < 17 || indexes == 0 {
		t.Fatalf("only %d headers and %d column indexes", headers, indexes)
	}
}

// checkHeaders takes the page headers of a column chunk apart.
func checkHeaders(t *testing.T, b []byte, c *columnMetaData) (pages int) {
	at := c.DataPageOffset
	if c.DictionaryPageOffset != 0 {
		at = c.DictionaryPageOffset
	}
	end := at + c.TotalCompressedSize
	for ; at < end; pages++ {
		h, n := sameAsLibrary[format.PageHeader](t, "page header", b[at:])
		at += int64(n) + int64(h.CompressedPageSize)
	}
	if at != end {
		t.Fatalf("%v: pages end at %d, the chunk at %d", c.PathInSchema, at, end)
	}
	return pages
}
