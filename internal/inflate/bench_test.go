package inflate

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	kgzip "github.com/klauspost/compress/gzip"
)

// cpuSeconds is what this process has used.
func cpuSeconds() float64 {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
	return float64(use.Utime.Nano()+use.Stime.Nano()) / 1e9
}

// benchData is the trace that TRACELAKE_BENCH_TRACE names, or generated events.
func benchData(b *testing.B) []byte {
	path := os.Getenv("TRACELAKE_BENCH_TRACE")
	if path == "" {
		return compress(b, texts()["events"], 6)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// BenchmarkGzip decompresses the trace that TRACELAKE_BENCH_TRACE names, or
// generated events, with each decoder in turn. It reports the CPU time of the
// fastest run, which other programs of the machine disturb least.
func BenchmarkGzip(b *testing.B) {
	data := benchData(b)
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

// BenchmarkStages takes the steps of reading ahead one after another on one
// goroutine and reports the CPU time of each, the shortest of all rounds.
func BenchmarkStages(b *testing.B) {
	data := benchData(b)
	o := Options{Workers: 1, limits: defaultLimits}
	o.limits.skip, o.limits.minShare = 0, 1
	best := map[string]float64{}
	buf := make([]byte, 256<<10)
	for b.Loop() {
		took := map[string]float64{}
		timed := func(stage string, work func()) {
			started := cpuSeconds()
			work()
			took[stage] += cpuSeconds() - started
		}
		r := Open(bytes.NewReader(data), Options{})
		timed("in-order", func() {
			for err := error(nil); err == nil; _, err = r.Read(buf) {
			}
		})
		text := r.total
		r.Close()

		a := &ahead{o: &o, src: bytes.NewReader(data)}
		a.aim(text, int64(len(data)))
		for a.srcErr == nil {
			a.takePiece()
		}
		at, inPieces := point{inText: false}, int64(0)
		for _, p := range a.held {
			timed("find", func() { p.begin() })
		}
		for _, p := range a.held {
			timed("decode", func() { p.decode(a) })
			if p.link(at) {
				timed("resolve", func() { p.resolve(a) })
				timed("copy", func() {
					for from := 0; from < p.n; from += len(buf) {
						copy(buf, p.text[from:])
					}
				})
				at = p.after
				inPieces += int64(p.n)
				a.giveText(p)
			}
		}
		b.ReportMetric(float64(inPieces)/float64(text)*100, "%-adopted")
		for stage, s := range took {
			if old, ok := best[stage]; !ok || s < old {
				best[stage] = s
			}
		}
	}
	for stage, s := range best {
		b.ReportMetric(s*1e3, stage+"-ms")
	}
}

// BenchmarkAhead reads in order and ahead, with as many workers as there are
// processors however few, and reports wall and CPU time of the fastest runs.
func BenchmarkAhead(b *testing.B) {
	data := benchData(b)
	buf := make([]byte, 256<<10)
	best := map[string]float64{}
	for b.Loop() {
		for _, way := range []struct {
			name  string
			share int
		}{{"in-order", 0}, {"ahead", 1 << 10}} {
			o := Options{Workers: runtime.GOMAXPROCS(0), limits: defaultLimits}
			o.limits.minShare = 1
			o.Share = func() int { return way.share }
			cpu, wall := cpuSeconds(), time.Now()
			r := Open(bytes.NewReader(data), o)
			for err := error(nil); err == nil; _, err = r.Read(buf) {
			}
			r.Close()
			for name, took := range map[string]float64{
				way.name + "-CPU-ms": cpuSeconds() - cpu, way.name + "-wall-ms": time.Since(wall).Seconds(),
			} {
				if old, ok := best[name]; !ok || took < old {
					best[name] = took
				}
			}
		}
	}
	for name, took := range best {
		b.ReportMetric(took*1e3, name)
	}
}
