package nsight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tracelake/schema"
)

// reportOf makes a report of statements.
func reportOf(t *testing.T, sql ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.sqlite")
	execute(t, path, append([]string{
		"CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)", "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)", "INSERT INTO StringIds VALUES (1, 'name')",
	}, sql...)...)
	return path
}

// words are the texts of a column, "-" where a row has none.
func words(r *Rows, col string) (out []string) {
	for _, v := range r.Values(col) {
		if v == schema.Null {
			out = append(out, "-")
			continue
		}
		out = append(out, r.Name(v))
	}
	return out
}

// eachReader imports a report by the scan and by the library.
func eachReader(t *testing.T, path string, check func(t *testing.T, res *Result)) {
	t.Helper()
	for _, o := range []Options{{}, {Library: true}} {
		t.Run(fmt.Sprintf("library %v", o.Library), func(t *testing.T) {
			res, err := Read(t.Context(), path, o)
			if err != nil {
				t.Fatal(err)
			}
			check(t, res)
		})
	}
}

// counted are the counts of what was noticed.
func counted(res *Result) map[schema.Code]int64 {
	out := map[schema.Code]int64{}
	for _, d := range res.Diags.List() {
		out[d.Code] += d.Count
	}
	return out
}

// TestWindow: an end that is missing, or before the start, does not move the
// window of the report.
func TestWindow(t *testing.T) {
	path := reportOf(t, "CREATE TABLE "+tableKernel+" (start, end)", "INSERT INTO "+tableKernel+" VALUES (1000, 1100), (1050, 0), (1060, NULL), (NULL, 5000)",
		"CREATE TABLE "+tableRuntime+" (start, end)", "INSERT INTO "+tableRuntime+" VALUES (990, -1), (995, 1000), (NULL, 7000)")
	eachReader(t, path, func(t *testing.T, res *Result) {
		if res.First != 990 || res.Last != 1100 {
			t.Errorf("from %d to %d", res.First, res.Last)
		}
		if got := counted(res); got[schema.BadTime] != 2 || got[schema.MissingDur] != 1 || got[schema.NegativeDur] != 2 {
			t.Error(got)
		}
	})
}

// TestTimesOfEveryTable: rows whose times cannot be used are counted, whatever
// their table, and those beyond what a time can be do not move the window.
func TestTimesOfEveryTable(t *testing.T) {
	const rows = " VALUES (10, 20), (30, 25), (NULL, 40), (9223372036854775800, 9223372036854775807)"
	sql := []string{"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs)", "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000)"}
	tables := []string{tableKernel, tableMemcpy, tableMemset, tableGraph, tableRuntime, tableNVTX}
	for i := range hostTables {
		tables = append(tables, hostTables[i].table)
	}
	for _, name := range tables {
		sql = append(sql, "CREATE TABLE "+name+" (start, end)", "INSERT INTO "+name+rows)
	}
	eachReader(t, reportOf(t, sql...), func(t *testing.T, res *Result) {
		if res.First != 10 || res.Last != 30 {
			t.Errorf("from %d to %d", res.First, res.Last)
		}
		n := int64(len(tables))
		if got := counted(res); got[schema.BadTime] != 2*n || got[schema.NegativeDur] != n || got[schema.MissingDur] != 0 {
			t.Errorf("%v of %d tables", got, n)
		}
	})
}

// TestClassOfCalls: the category of a call is the one that it is counted by.
func TestClassOfCalls(t *testing.T) {
	for columns, want := range map[string][]string{
		"start, end, eventClass": {"cuda_api", "cuda_driver", "cuda_runtime", "event_class_7"}, "start, end, other": {"cuda_api", "cuda_api", "cuda_api", "cuda_api"},
	} {
		path := reportOf(t, "CREATE TABLE "+tableRuntime+" ("+columns+")", "INSERT INTO "+tableRuntime+" VALUES (1, 2, NULL), (3, 4, 1), (5, 6, 0), (7, 8, 7)")
		eachReader(t, path, func(t *testing.T, res *Result) {
			if got := words(res.Launches, "category"); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			if got := slices.Sorted(maps.Keys(res.Kinds)); !slices.Equal(got, slices.Compact(slices.Clone(want))) {
				t.Errorf("counted by %v", got)
			}
		})
	}
}

// TestNumbersOutOfRange: a number that no integer holds is missing, and counted.
func TestNumbersOutOfRange(t *testing.T) {
	path := reportOf(t, "CREATE TABLE "+tableKernel+" (start, end, gridX, gridY, gridZ)", "INSERT INTO "+tableKernel+" VALUES (1, 2, 1e300, -9e999, 9223372036854775808)")
	eachReader(t, path, func(t *testing.T, res *Result) {
		odd := counted(res)[schema.OddArgument]
		for _, c := range []string{"grid_x", "grid_y", "grid_z"} {
			if v := res.GPU.Values(c); v[0] != schema.Null {
				t.Errorf("%s is %d", c, v[0])
			}
		}
		if odd != 3 {
			t.Errorf("%d counted", odd)
		}
	})
}

// TestNothingEnds: JSON lines leave out what is null, such as the end of marks.
func TestNothingEnds(t *testing.T) {
	lines := []string{
		`{"table":"StringIds","id":1,"value":"name"}`, `{"table":"META_DATA_EXPORT","name":"a","value":"b"}`,
		"{\"table\":\"NVTX_EVENTS\",\"start\":5,\"eventType\":34,\"textId\":1,\"globalTid\":16777216\t}",
	}
	path := filepath.Join(t.TempDir(), "report.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	same := reportOf(t, "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, textId INT, globalTid INT)", "INSERT INTO NVTX_EVENTS VALUES (5, NULL, 34, 1, 16777216)")
	res, err := Read(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Rows["instants"] != 1 || res.Digest != digestOf(t, same, Options{}) {
		t.Errorf("%v, or other rows than the database", res.Rows)
	}
}

// endless is a view that has no first row.
const endless = " AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i AS start, i AS end FROM n WHERE i < 0"

// TestViews: the query of a view runs only where its rows are imported, and ends
// with the import.
func TestViews(t *testing.T) {
	path := reportOf(t, "CREATE VIEW more"+endless)
	eachReader(t, path, func(t *testing.T, res *Result) {
		for _, d := range res.Diags.List() {
			if d.Code == schema.UnreadTable {
				t.Error(d.Message)
			}
		}
	})
	path = reportOf(t, "CREATE VIEW "+tableKernel+endless)
	for _, o := range []Options{{}, {Library: true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := Read(ctx, path, o); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		cancel()
	}
}

// TestLibraryChecks: what the scan leaves to the library is checked for damage.
func TestLibraryChecks(t *testing.T) {
	path := reportOf(t, "PRAGMA page_size=1024", "DROP TABLE StringIds", "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT) WITHOUT ROWID",
		"CREATE TABLE "+tableKernel+" (start, end, shortName)", "INSERT INTO "+tableKernel+" VALUES (1, 2, 3)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 500) INSERT INTO StringIds SELECT i, 'value of ' || i FROM n")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := whole[strings.Index(string(whole), "value of 400")&^1023:]
	copy(page[10:12], page[8:10]) // the second row is the first one again
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{}, {Library: true}} {
		if why := refused(t, path, o); !strings.Contains(why, "quick_check fails") {
			t.Error(why)
		}
	}
}
