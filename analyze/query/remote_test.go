//go:build cgo && !noduckdb

package query

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tracelake/convert"
	_ "tracelake/internal/store/cloud"
	"tracelake/internal/store/storetest"
	"tracelake/schema/lake"
)

// TestRemote asks a dataset in a bucket and its twin in a directory the same.
func TestRemote(t *testing.T) {
	s := storetest.Start(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	here := t.TempDir()
	found, err := convert.Discover([]string{"../../testdata/demo"})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{here, s.URL("lake")} {
		if _, err := convert.Run(t.Context(), found, convert.Options{Output: to, Writer: "test", Run: "r"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Write(t, "lake/gpu_events/run=r/rank=0/part-000000000000.parquet", []byte("of an import that goes on"))
	remote, local := open(t, s.URL("lake")), open(t, here)
	copied := func() (tables []string) {
		entries, _ := filepath.Glob(filepath.Join(temp, "*", "parts", "*"))
		for _, e := range entries {
			tables = append(tables, filepath.Base(e))
		}
		return tables
	}
	if got := copied(); len(got) > 0 {
		t.Errorf("copied before any query: %v", got)
	}
	for i, q := range []string{
		"SELECT count(*), min(run), max(rank) FROM GPU_EVENTS -- not of cpu_events",
		`SELECT code, count(*) FROM "diagnostics" GROUP BY code ORDER BY code`,
		"CREATE TEMP VIEW mine AS SELECT * FROM launches; SELECT count(*), sum(dur_ns) FROM mine",
		"SELECT class, count(*), sum(dur_ns) FROM gpu_work GROUP BY class ORDER BY class",
	} {
		if got, want := csvOf(t, remote, q), csvOf(t, local, q); got != want || strings.Count(got, "\n") < 2 {
			t.Errorf("%s:\n%s\nwant\n%s", q, got, want)
		}
		if got := copied(); i == 0 && !slices.Equal(got, []string{"gpu_events"}) {
			t.Errorf("copied: %v", got)
		}
	}
	for _, a := range Analyses() {
		got, want := csvOf(t, remote, a.SQL), csvOf(t, local, a.SQL)
		if got != want {
			t.Errorf("analyze %s differs", a.Name)
		}
	}
	selectRemotely(t, s.URL("lake"), here)
	// Merged, then partly imported again: rows in merged files no longer count.
	l, err := lake.Create(s.URL("lake"), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Compact(t.Context(), lake.CompactOptions{TargetBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	serving, err := convert.Discover([]string{"../../testdata/demo/serving"})
	if err != nil {
		t.Fatal(err)
	}
	o := convert.Options{Output: s.URL("lake"), Writer: "test", Run: "r", Force: true, Member: true}
	if _, err := convert.Run(t.Context(), serving, o, nil); err != nil {
		t.Fatal(err)
	}
	if stale := staleFiles(t, l); stale == 0 {
		t.Error("no file has rows that do not count")
	}
	merged := open(t, s.URL("lake"))
	for _, table := range []string{"gpu_events", "traces", "diagnostics", "activities"} {
		q := "SELECT trace_id, count(*) FROM " + table + " GROUP BY 1 ORDER BY 1"
		if got, want := csvOf(t, merged, q), csvOf(t, local, q); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", q, got, want)
		}
	}
	if err := os.RemoveAll(filepath.Join(s.Dir, "lake", "flows")); err != nil {
		t.Fatal(err)
	}
	again := open(t, s.URL("lake"))
	if _, err := again.Query(t.Context(), "FROM query_table(['flows'])"); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a part that is gone: %v", err)
	}
}

// selectRemotely asks every analysis about some of the traces of a bucket: the
// answers are those of the same dataset in a directory, and only what has rows of
// these traces was copied.
func selectRemotely(t *testing.T, url, here string) {
	t.Helper()
	ask := open(t, here)
	id := strings.TrimSpace(strings.TrimPrefix(csvOf(t, ask, "SELECT trace_id FROM traces WHERE rank = 1"), "trace_id"))
	for _, vars := range []map[string]any{
		{"run": "r", "rank": int64(1)}, {"trace": id}, {"run": "other"}, {"rank": int64(77)}, {"run": "r"},
	} {
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		remote, local := open(t, url), open(t, here)
		for _, db := range []*DB{remote, local} {
			if err := db.Select(t.Context(), vars); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range Analyses() {
			if got, want := csvOf(t, remote, a.SQL), csvOf(t, local, a.SQL); got != want {
				t.Errorf("%v: analyze %s differs:\n%s\nwant\n%s", vars, a.Name, got, want)
			}
		}
		parts, _ := filepath.Glob(filepath.Join(temp, "*", "parts", "gpu_events", "run=*", "*"))
		for i, p := range parts {
			parts[i] = filepath.Base(p)
		}
		want := []string{"rank=1"}
		switch {
		case vars["run"] == "other" || vars["rank"] == int64(77):
			want = nil
		case vars["rank"] == nil && vars["trace"] == nil:
			want = []string{"rank=-1", "rank=0", "rank=1"}
		}
		if slices.Sort(parts); !slices.Equal(parts, want) {
			t.Errorf("%v: copied %v, want %v", vars, parts, want)
		}
	}
}

func staleFiles(t *testing.T, l *lake.Lake) int {
	t.Helper()
	commits, err := l.Commits()
	if err != nil {
		t.Fatal(err)
	}
	return len(lake.Keep(commits))
}

func csvOf(t *testing.T, db *DB, q string) string {
	t.Helper()
	rows, err := db.Query(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	var out strings.Builder
	if err := Print(&out, CSV, rows); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return out.String()
}
