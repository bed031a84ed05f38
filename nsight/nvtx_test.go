package nsight

import (
	"context"
	"path/filepath"
	"testing"
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
