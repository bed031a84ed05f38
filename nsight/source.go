package nsight

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
)

// kind is what a column is read as.
type kind uint8

const (
	integer kind = iota // int64; unsigned 64-bit values keep their bits
	real                // bits of a float64
	text                // number in batch.texts
)

// want is a column that a scan asks for.
type want struct {
	name string
	kind kind
}

func ints(names ...string) (out []want) {
	for _, n := range names {
		out = append(out, want{n, integer})
	}
	return out
}

// batch is a run of rows of a table. Its memory is reused after the receiver
// returns.
type batch struct {
	n     int
	cols  [][]int64 // by want; nil where the table lacks the column, schema.Null where a row has no value
	texts *texts
	odd   int64 // values of a type that their column cannot hold, read as missing
}

// texts numbers the distinct strings of a batch.
type texts struct {
	list []string
	at   map[string]int64
}

func (t *texts) put(b []byte) int64 {
	if n, ok := t.at[string(b)]; ok {
		return n
	}
	if t.at == nil {
		t.at = map[string]int64{}
	}
	n := int64(len(t.list))
	s := strings.ToValidUTF8(string(b), "\ufffd")
	t.list = append(t.list, s)
	t.at[string(b)] = n
	return n
}

func (t *texts) reset() {
	t.list = t.list[:0]
	clear(t.at)
}

// tables is an export, whatever its format.
type tables interface {
	format() string
	// names are the tables that the export holds, empty ones included.
	names() []string
	// view reports whether a table is a view, whose rows may cost any time.
	view(table string) bool
	// columns are the columns of a table.
	columns(table string) ([]string, error)
	// scan reads columns of a table in source order. Batches come one at a time.
	// With only, rows whose first column is not in it may be left out.
	scan(ctx context.Context, table string, wants []want, only *idSet, emit func(*batch) error) error
	// bytes is the size of the export as stored.
	bytes() int64
	close() error
}

// column finds a column by name, by exact case first.
func column(have []string, name string) int {
	for i, h := range have {
		if h == name {
			return i
		}
	}
	for i, h := range have {
		if strings.EqualFold(h, name) {
			return i
		}
	}
	return -1
}

var variant = regexp.MustCompile(`^_V\d+$`)

// find returns the name under which an export holds a table: its own, else in
// other letters, which to SQLite are the same, else with a version suffix
// (NVTX_EVENTS_V3). It is "" where there is none.
func find(names []string, table string) string {
	if slices.Contains(names, table) {
		return table
	}
	found := ""
	for _, n := range names {
		if strings.EqualFold(n, table) {
			return n
		}
		if rest, ok := strings.CutPrefix(n, table); ok && variant.MatchString(rest) && cmp.Or(cmp.Compare(len(n), len(found)), cmp.Compare(n, found)) > 0 {
			found = n // the highest version
		}
	}
	return found
}
