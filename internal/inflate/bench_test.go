package inflate

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"syscall"
	"testing"

	kgzip "github.com/klauspost/compress/gzip"
)

// cpuSeconds is what this process has used.
func cpuSeconds() float64 {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

// BenchmarkGzip decompresses the trace that TRACELAKE_BENCH_TRACE names, or
// generated events, with each decoder in turn. It reports the CPU time of the
// fastest run, which other programs of the machine disturb least.
func BenchmarkGzip(b *testing.B) {
	data := compress(b, texts()["events"], 6)
	if path := os.Getenv("TRACELAKE_BENCH_TRACE"); path != "" {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			b.Fatal(err)
		}
	}
	decoders := []struct {
		name string
		open func(io.Reader) (io.Reader, error)
	}{
		{"ours", func(r io.Reader) (io.Reader, error) { return Open(r, Options{}), nil }},
		{"klauspost", func(r io.Reader) (io.Reader, error) { return kgzip.NewReader(r) }},
		{"standard", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	}
	buf := make([]byte, 256<<10)
	best := map[string]float64{}
	text := 0
	for b.Loop() {
		for _, c := range decoders {
			started := cpuSeconds()
			z, err := c.open(bytes.NewReader(data))
			if err != nil {
				b.Fatal(err)
			}
			text = 0
			for {
				n, err := io.ReadFull(z, buf)
				text += n
				if err != nil {
					break
				}
			}
			took := cpuSeconds() - started
			if r, ok := z.(*Reader); ok {
				r.Close()
			}
			if best[c.name] == 0 || took < best[c.name] {
				best[c.name] = took
			}
		}
	}
	for name, seconds := range best {
		b.ReportMetric(float64(text)/1e6/seconds, name+"-MB/CPU-s")
	}
}
