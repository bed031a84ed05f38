package inflate

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"

	kgzip "github.com/klauspost/compress/gzip"
)

// BenchmarkGzip decompresses the trace that TRACELAKE_BENCH_TRACE names, or
// generated events.
func BenchmarkGzip(b *testing.B) {
	data := compress(b, texts()["events"], 6)
	if path := os.Getenv("TRACELAKE_BENCH_TRACE"); path != "" {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		open func(io.Reader) (io.Reader, error)
	}{
		{"ours", func(r io.Reader) (io.Reader, error) { return Open(r, Options{}), nil }},
		{"klauspost", func(r io.Reader) (io.Reader, error) { return kgzip.NewReader(r) }},
		{"standard", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			buf := make([]byte, 256<<10)
			for b.Loop() {
				z, err := c.open(bytes.NewReader(data))
				if err != nil {
					b.Fatal(err)
				}
				total := int64(0)
				for {
					n, err := io.ReadFull(z, buf)
					total += int64(n)
					if err != nil {
						break
					}
				}
				b.SetBytes(total)
			}
		})
	}
}
