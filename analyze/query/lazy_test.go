//go:build cgo && !noduckdb

package query

import (
	"testing"
)

// TestLazy asserts that every analysis finds what it names where views come into
// being late, in either case of letters.
func TestLazy(t *testing.T) {
	root, _ := many(t)
	eager := open(t, root)
	for _, a := range Analyses() {
		lazy, err := Open(t.Context(), root, Options{Lazy: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := ask(t, lazy, a.SQL), ask(t, eager, a.SQL); got != want {
			t.Errorf("%s: %d bytes, want %d", a.Name, len(got), len(want))
		}
		if err := lazy.Close(); err != nil {
			t.Error(err)
		}
	}
	lazy, err := Open(t.Context(), root, Options{Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	defer lazy.Close()
	if got := ask(t, lazy, "SELECT count(*) AS n FROM GPU_Work"); got != "n\n9000\n" {
		t.Error(got)
	}
}
