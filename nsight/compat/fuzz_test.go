package compat

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad reads reports with bytes changed anywhere: they are read, or refused
// with an *Error.
func FuzzLoad(f *testing.F) {
	whole, err := os.ReadFile("../../testdata/stormlog/nsys_ok.sqlite")
	if err != nil {
		f.Fatal(err)
	}
	for seed := range uint64(6) {
		f.Add(seed, uint8(seed*seed), uint16(seed%2*5000))
	}
	f.Fuzz(func(t *testing.T, seed uint64, changes uint8, cut uint16) {
		r := rand.New(rand.NewPCG(seed, 5))
		b := append([]byte(nil), whole[:len(whole)-int(cut)%len(whole)]...)
		for range changes {
			at := r.IntN(len(b))
			if r.IntN(2) == 0 { // headers of pages
				at = min(len(b)-1, at/4096*4096+r.IntN(120))
			}
			b[at] = byte(r.Uint32())
		}
		path := filepath.Join(t.TempDir(), "report.sqlite")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		trace, err := Load(path)
		var refused *Error
		if err != nil && !errors.As(err, &refused) || err == nil && trace == nil {
			t.Fatalf("%v is no refusal", err)
		}
	})
}
