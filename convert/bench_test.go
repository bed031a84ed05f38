package convert

import (
	"context"
	"os"
	"testing"
)

// BenchmarkConvert converts the trace that TRACELAKE_BENCH_TRACE names; it is
// meant for profiles.
func BenchmarkConvert(b *testing.B) {
	path := os.Getenv("TRACELAKE_BENCH_TRACE")
	if path == "" {
		b.Skip("TRACELAKE_BENCH_TRACE names no trace")
	}
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	b.ReportAllocs()
	for b.Loop() {
		found, err := Discover([]string{path})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Run(context.Background(), found, Options{Output: b.TempDir(), Writer: "bench"}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
