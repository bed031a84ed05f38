package convert

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// noticed lists what a report notices.
func noticed(r Report) string {
	var out []string
	for _, d := range r.Diags {
		out = append(out, fmt.Sprint(d.Code, d.Count, d.Message))
	}
	return strings.Join(out, "\n")
}

// TestTablesAlike checks that leaving tables out changes nothing in the others
// and in what is counted.
func TestTablesAlike(t *testing.T) {
	traces := []string{filepath.Join(demo, "serving"), filepath.Join(demo, "cpu"), "../testdata/own"}
	all, some := filepath.Join(t.TempDir(), "all"), filepath.Join(t.TempDir(), "some")
	want, _ := mustRun(t, Options{Output: all, Run: "r"}, traces...)
	got, _ := mustRun(t, Options{Output: some, Run: "r", Tables: []string{"gpu_events", "counters"}}, traces...)
	for name, w := range want {
		g := got[name]
		if g.Events != w.Events || g.GPUEvents != w.GPUEvents || g.Linked != w.Linked || noticed(g) != noticed(w) {
			t.Errorf("%s: %+v, want %+v", name, g, w)
		}
		for _, table := range []string{"gpu_events", "counters"} {
			if g.Rows[table] != w.Rows[table] {
				t.Errorf("%s: %d rows in %s, want %d", name, g.Rows[table], table, w.Rows[table])
			}
		}
		if _, there := g.Rows["cpu_events"]; there {
			t.Errorf("%s: wrote cpu_events", name)
		}
	}
}
