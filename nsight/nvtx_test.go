package nsight

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tracelake/schema"
)

// A report with ranges alone has no marks, and one with marks alone no ranges.
func TestRangesAreNoMarks(t *testing.T) {
	for _, c := range []struct{ kind, table, other string }{{"59", "ranges", "instants"}, {"34", "instants", "ranges"}} {
		path := filepath.Join(t.TempDir(), "report.sqlite")
		execute(t, path, "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)", "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)", "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT)",
			"INSERT INTO NVTX_EVENTS VALUES (10, 20, "+c.kind+", 'a', 281476838981743), (12, 14, "+c.kind+", 'b', 281476838981743)")
		res, err := Read(context.Background(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if res.Rows[c.table] != 2 || res.Rows[c.other] != 0 {
			t.Errorf("type %s: %v", c.kind, res.Rows)
		}
	}
}

// TestTypesOfNVTX: rows of every type are ranges, marks, names, or counted as left
// out; without the column their end tells.
func TestTypesOfNVTX(t *testing.T) {
	rows := func(path string) (ranges, marks int64, notes string) {
		res, err := Read(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range res.Diags.List() {
			if d.Code == schema.UnreadTable && strings.Contains(d.Message, "NVTX") {
				notes += fmt.Sprintf("%d %s\n", d.Count, d.Message)
			}
		}
		return res.Rows["ranges"], res.Rows["instants"], notes
	}
	ranges, marks, notes := rows(demoReport)
	if ranges == 0 || notes != "" {
		t.Fatalf("%d ranges, %q", ranges, notes)
	}
	path := copyOf(t, demoReport)
	add := func(eventType int) string {
		return fmt.Sprintf("INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid) SELECT min(start), %d, 'more', max(globalTid) FROM NVTX_EVENTS", eventType)
	}
	execute(t, path, add(34), add(65), add(39), add(1234), add(1234))
	if r, m, notes := rows(path); r != ranges || m != marks+2 || !strings.HasPrefix(notes, "2 ") || !strings.Contains(notes, "type 1234") {
		t.Errorf("%d ranges, %d marks, %q", r, m, notes)
	}
	path = copyOf(t, demoReport)
	execute(t, path, "DELETE FROM NVTX_EVENTS WHERE eventType NOT IN (34, 59, 60)", "ALTER TABLE NVTX_EVENTS DROP COLUMN eventType")
	if r, m, notes := rows(path); r != ranges || m != marks || notes != "" {
		t.Errorf("without types: %d ranges, %d marks, %q; want %d and %d", r, m, notes, ranges, marks)
	}
}

// TestNoStringIDs: a report whose strings have no IDs is refused, and not read as
// if it had none.
func TestNoStringIDs(t *testing.T) {
	for _, column := range []string{"id", "value"} {
		path := copyOf(t, demoReport)
		execute(t, path, "ALTER TABLE StringIds RENAME COLUMN "+column+" TO other")
		for _, library := range []bool{false, true} {
			if why := refused(t, path, Options{Library: library}); !strings.Contains(why, "no column id or value") {
				t.Errorf("%s: %q", column, why)
			}
		}
	}
}

// TestNVTXWithoutProcess: domains and categories have names where no row says
// whose they are.
func TestNVTXWithoutProcess(t *testing.T) {
	path := reportOf(t, "CREATE TABLE NVTX_EVENTS (start, end, eventType, text, domainId, category)",
		"INSERT INTO NVTX_EVENTS VALUES (1, NULL, 75, 'a domain', 3, NULL), (1, NULL, 33, 'a category', 3, 9), (10, 20, 59, 'r', 3, 9), (11, 12, 59, 'r', 4, 8)")
	eachReader(t, path, func(t *testing.T, res *Result) {
		if got := words(res.Ranges, "domain"); !slices.Equal(got, []string{"a domain", "domain 4"}) {
			t.Error(got)
		}
		if got := words(res.Ranges, "nvtx_category"); !slices.Equal(got, []string{"a category", "category 8"}) {
			t.Error(got)
		}
	})
}

// TestVersionsOfTables: of several versions of a table the highest is read, unless
// there is one without a version, in whatever letters.
func TestVersionsOfTables(t *testing.T) {
	names := []string{"NVTX_EVENTS_V2", "NVTX_EVENTS_V10", "NVTX_EVENTS_V9", "NVTX_EVENTS_V", "NVTX_EVENTS_VIEW", "NVTX"}
	if got := find(names, tableNVTX); got != "NVTX_EVENTS_V10" {
		t.Error(got)
	}
	if got := find(append(names, "nvtx_events"), tableNVTX); got != "nvtx_events" {
		t.Error(got)
	}
	if got := find(append(names, "nvtx_events", tableNVTX), tableNVTX); got != tableNVTX {
		t.Error(got)
	}
}
