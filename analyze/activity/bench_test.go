package activity

import (
	"io"
	"testing"

	"tracelake/analyze/link"
	"tracelake/schema"
)

// busyTrace has n launches of one kernel each on one device, in iterations of a
// thousand launches.
func busyTrace(n int64) *schema.Trace {
	t := &schema.Trace{Source: "kineto"}
	g, l := &t.GPU, &t.Launches
	g.Names, l.Names = []string{"kernel"}, []string{"cudaLaunchKernel"}
	for i := range n {
		g.Start, g.End = append(g.Start, 10*i), append(g.End, 10*i+9)
		g.Kind, g.Name = append(g.Kind, schema.Kernel), append(g.Name, 0)
		g.Device, g.Stream = append(g.Device, 0), append(g.Stream, 7)
		g.Correlation, g.Graph = append(g.Correlation, i+1), append(g.Graph, schema.Null)
		l.KeyPID, l.Correlation = append(l.KeyPID, schema.Null), append(l.Correlation, i+1)
		l.PID, l.TID = append(l.PID, 1), append(l.TID, 1)
		l.Tick, l.Name = append(l.Tick, 10*i), append(l.Name, 0)
		if i%1000 == 0 {
			t.Spans = append(t.Spans, schema.Span{PID: 1, TID: 1, Start: 10 * i, End: 10 * (i + 1000), Ref: schema.EntityRef{Producer: "p", ID: "i"}})
		}
	}
	return t
}

// BenchmarkResolveAndGroup reports the bytes allocated per event and launch.
func BenchmarkResolveAndGroup(b *testing.B) {
	const n = 1_000_000
	t := busyTrace(n)
	b.ReportAllocs()
	for b.Loop() {
		Group(t, link.Resolve(t, link.Careful), Launch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
}

func BenchmarkRecords(b *testing.B) {
	const n = 100_000
	r, err := Capture(busyTrace(n), "x.json", Options{RunID: "r", SessionID: "s"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := r.WriteJSONLines(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}
