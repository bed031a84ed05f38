//go:build cgo && !noduckdb

package query

import (
	"errors"
	"testing"
)

// TestSelections: an analysis heeds what its header says. What does not exist
// leaves nothing of it, and what it does not heed changes nothing, and is refused.
func TestSelections(t *testing.T) {
	root := converted(t, "r", "analyses", "collect")
	db := open(t, root)
	nothing := map[string]string{"run": "'none'", "rank": "77", "trace": "'none'", "device": "77", "iteration": "'none'", "from_ns": "1_000_000_000_000_000_000", "to_ns": "-1_000_000_000_000_000_000"}
	for _, a := range Analyses() {
		all := ask(t, db, a.SQL)
		if len(lines(all)) < 1 || lines(all)[0] == "" {
			t.Errorf("%s has no rows to begin with", a.Name)
		}
		if len(a.Selects) == 0 {
			t.Errorf("%s does not say what it heeds", a.Name)
		}
		for _, s := range Selections {
			heeded := a.Heeds(s.Variable) == nil
			got := ask(t, db, "SET VARIABLE "+s.Variable+" = "+nothing[s.Variable]+";\n"+a.SQL)
			var err error
			if !heeded {
				_, err = db.Analyze(t.Context(), a)
			}
			ask(t, db, "RESET VARIABLE "+s.Variable+"; SELECT 1 AS x")
			switch {
			case !heeded && (got != all || !errors.Is(err, ErrSelection)):
				t.Errorf("%s does not take --%s: %v\n%swithout it\n%s", a.Name, s.Name, err, got, all)
			case heeded && s.Name == "device" && got == all: // calls and marks are of no device: their GPU time is
				t.Errorf("%s ignores --device\n%s", a.Name, got)
			case heeded && s.Name != "device" && len(lines(got)) > 0:
				t.Errorf("%s has rows where --%s leaves nothing:\n%s", a.Name, s.Name, got)
			}
		}
	}
}

func TestHeeds(t *testing.T) {
	for _, c := range []struct {
		selects  []string
		variable string
		want     string
	}{
		{[]string{"run", "from"}, "from_ns", ""},
		{[]string{"run", "from"}, "top", ""},
		{[]string{"run", "from"}, "to_ns", "x cannot be limited that way: it takes --run and --from, not --to"},
		{[]string{"run"}, "iteration", "x cannot be limited that way: it takes --run, not --iteration"},
		{nil, "run", "x cannot be limited that way: it takes no selection, not --run"},
	} {
		a := Analysis{Name: "x", Selects: c.selects}
		got := ""
		if err := a.Heeds(c.variable); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v, %s: %q, want %q", c.selects, c.variable, got, c.want)
		}
	}
	if _, err := Parse("x", "-- title: T\n-- what it answers: W?\n-- selects: run, moon\n-- columns and units:\n--   a  b\nSELECT 1 AS a"); err == nil {
		t.Error("an unknown selection is taken")
	}
}
