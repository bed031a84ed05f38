//go:build cgo && !noduckdb

package redact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tracelake/analyze/query"
	"tracelake/convert"
	"tracelake/schema"
)

// ImportAll imports traces into a dataset and opens it.
func ImportAll(t testing.TB, paths ...string) *query.DB {
	t.Helper()
	lake := filepath.Join(t.TempDir(), "lake")
	found, err := convert.Discover(paths)
	if err != nil {
		t.Fatal(err)
	}
	_, err = convert.Run(context.Background(), found, convert.Options{Output: lake, Run: "r", Writer: "test"}, func(r convert.Report) {
		if r.Failed != "" || r.Outcome == "rejected" {
			t.Fatalf("%s: %s%s", r.Path, r.Failed, r.Reason)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := query.Open(context.Background(), lake, query.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Ask returns the rows of a query as texts.
func Ask(t testing.TB, db *query.DB, sql string) (out []string) {
	t.Helper()
	rows, err := db.Query(context.Background(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	v := make([]any, len(rows.Columns()))
	for {
		if err := rows.Next(v); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(v...))
	}
}

// textsThatStay are columns of texts that a copy shares with its source.
var textsThatStay = []string{
	"kind", "time_flag", "link_method", "link_status", "unresolved_reason", "copy_kind", "src_memory", "dst_memory", "detail", "phase",
	"input_dims", "input_strides", "pairing", "bind_point", "scope", "process_group_ranks", "in_split_size", "out_split_size",
}

// CompareRows checks that the rows of the two traces of a dataset are the same
// but for texts, and that equal names have equal placeholders.
func CompareRows(t testing.TB, db *query.DB, label, a, b string) {
	t.Helper()
	for _, table := range schema.Tables {
		if table.Name == "traces" || table.Name == "diagnostics" {
			continue
		}
		var cols []string
		for _, c := range table.Columns {
			if c.Type != schema.String || slices.Contains(textsThatStay, c.Name) {
				cols = append(cols, `"`+c.Name+`"`)
			}
		}
		for _, d := range [][2]string{{a, b}, {b, a}} {
			list := strings.Join(cols, ", ")
			left := Ask(t, db, fmt.Sprintf("SELECT %s FROM %s WHERE trace_id = '%s' EXCEPT ALL SELECT %s FROM %s WHERE trace_id = '%s'",
				list, table.Name, d[0], list, table.Name, d[1]))
			if len(left) > 0 {
				t.Errorf("%s: %s: %d rows differ, such as %.300s", label, table.Name, len(left), left[0])
			}
		}
	}
	for _, c := range []string{"gpu_events.name", "launches.api", "ranges.name", "cpu_events.name", "gpu_events.iteration_id"} {
		table, col, _ := strings.Cut(c, ".")
		n := Ask(t, db, fmt.Sprintf(`SELECT count(DISTINCT a.%[2]s), count(DISTINCT b.%[2]s), count(DISTINCT (a.%[2]s, b.%[2]s))
FROM %[1]s AS a JOIN %[1]s AS b USING (event_index) WHERE a.trace_id = '%[3]s' AND b.trace_id = '%[4]s' AND a.%[2]s IS NOT NULL`, table, col, a, b))[0]
		if f := strings.Fields(n); f[0] != f[1] || f[0] != f[2] {
			t.Errorf("%s: %s: %s distinct names, %s placeholders, %s pairs", label, c, f[0], f[1], f[2])
		}
	}
	if n := Ask(t, db, "SELECT count(*) FROM gpu_events WHERE trace_id = '"+a+"'"); n[0] == "0" && !strings.Contains(label, "cpu") {
		t.Errorf("%s: no GPU events", label)
	}
}

func TestRowsStay(t *testing.T) {
	for f, text := range traces(t) {
		copied := filepath.Join(t.TempDir(), "copy.json")
		if err := os.WriteFile(copied, []byte(rewrite(t, Options{}, text)), 0o600); err != nil {
			t.Fatal(err)
		}
		db := ImportAll(t, f, copied)
		id := func(path string) string {
			return Ask(t, db, "SELECT trace_id FROM traces WHERE path = '"+path+"'")[0]
		}
		CompareRows(t, db, f, id(f), id(copied))
		header := "SELECT rank, world_size, base_ns, start_ns, end_ns, events, linked_gpu_events, iteration_gpu_events, iterations, cupti_version FROM traces WHERE path = '"
		if a, b := Ask(t, db, header+f+"'"), Ask(t, db, header+copied+"'"); a[0] != b[0] {
			t.Errorf("%s: %s became %s", f, a, b)
		}
	}
}
