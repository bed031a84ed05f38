package diff

import (
	"math"
	"testing"
)

// FuzzParseGate reads --fail-on: a limit is a number, and its text reads alike.
func FuzzParseGate(f *testing.F) {
	for _, s := range []string{">5%", "kernel > 2.5 %", "gpu>1e3%", ">-1%", "iteration>" + "9999999999999999999999999999%", ">.5%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseGate(text)
		if err != nil {
			return
		}
		if math.IsNaN(g.percent) || g.percent < 0 || g.what == "" {
			t.Fatalf("%q: %+v", text, g)
		}
		if again, err := ParseGate(g.Text); err != nil || again != g {
			t.Fatalf("%q: %+v, then %+v, %v", text, g, again, err)
		}
		if _, err := g.Check(&Report{}, 0); err == nil {
			t.Fatalf("%q holds for a report without figures", text)
		}
	})
}
