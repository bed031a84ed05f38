package columnar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tracelake/schema"
)

// gpuLike is a table of 25 columns with the shapes that GPU events have.
func gpuLike(rows int) (*schema.Table, []Vector) {
	t := &schema.Table{Name: "gpu_like", Order: "start_ns", Columns: []schema.Column{{Name: "trace_id", Type: schema.String}}}
	cols := []Vector{{}}
	r := rand.New(rand.NewPCG(7, 7))
	add := func(name string, typ schema.Type, share float64, dict []string, next func(i int) int64) {
		t.Columns = append(t.Columns, schema.Column{Name: name, Type: typ, Nullable: true})
		v := Vector{Rows: []int32{}, Dict: dict}
		for i := range rows {
			if r.Float64() < share {
				v.Rows, v.Vals = append(v.Rows, int32(i)), append(v.Vals, next(i))
			}
		}
		cols = append(cols, v)
	}
	texts := func(n, length int) (d []string) {
		for i := range n {
			d = append(d, fmt.Sprintf("%0*d", length, i*7919))
		}
		return d
	}
	few := func(n int64) func(int) int64 { return func(int) int64 { return r.Int64N(n) * 13 } }
	now := int64(1_700_000_000_000_000_000)
	times := make([]int64, rows)
	for i := range times {
		now += r.Int64N(9000)
		times[i] = now
	}
	add("start_ns", schema.Int64, 1, nil, func(i int) int64 { return times[i] })
	add("dur_ns", schema.Int64, 1, nil, func(int) int64 { return int64(math.Exp(r.NormFloat64()+9)) * 32 })
	add("end_ns", schema.Int64, 1, nil, func(i int) int64 { return times[i] + r.Int64N(90000) })
	add("event_index", schema.Int64, 1, nil, func(i int) int64 { return int64(i) * 3 })
	add("name", schema.String, 1, texts(600, 120), func(int) int64 { return r.Int64N(600) })
	add("category", schema.String, 1, texts(9, 10), func(i int) int64 { return int64(i / 40 % 9) })
	add("args_json", schema.String, 0.2, texts(rows/20, 60), func(i int) int64 { return int64(i / 20) })
	add("correlation", schema.Int64, 0.9, nil, func(i int) int64 { return int64(i/2) + r.Int64N(40) })
	add("external_id", schema.Int64, 0.9, nil, func(i int) int64 { return int64(i/5) + r.Int64N(9) })
	for i := range 5 {
		add(fmt.Sprintf("text%d", i), schema.String, 0.3, texts(60, 12), func(int) int64 { return r.Int64N(60) })
	}
	for i := range 8 {
		add(fmt.Sprintf("few%d", i), schema.Int64, 0.8, nil, few([]int64{1, 2, 8, 30, 100, 4, 1, 500}[i]))
	}
	add("occupancy", schema.Float64, 0.5, nil, func(int) int64 { return int64(math.Float64bits(float64(r.IntN(100)))) })
	add("bandwidth", schema.Float64, 0.1, nil, func(int) int64 { return int64(math.Float64bits(r.Float64())) })
	return t, cols
}

// discard takes a file and keeps nothing.
type discard struct{}

func (discard) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }

func BenchmarkEncode(b *testing.B) {
	const rows = 640_000
	table, cols := gpuLike(rows)
	for c := Zstd; c <= None; c++ {
		b.Run(c.String(), func(b *testing.B) {
			e := NewEncoder(table, Options{Compression: c})
			var bytes int64
			for b.Loop() {
				f, err := Create(discard{}, table, Options{})
				if err != nil {
					b.Fatal(err)
				}
				chunk, err := e.Encode(rows, cols)
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Append(chunk); err != nil {
					b.Fatal(err)
				}
				if _, bytes, err = f.Close(testID, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(bytes)/1e6, "MB")
			b.ReportAllocs()
		})
	}
}

func BenchmarkDelta(b *testing.B) {
	v := make([]int64, PageRows)
	for i := range v {
		v[i] = int64(i)*1000 + int64(i*7919%900)
	}
	var dst []byte
	b.SetBytes(8 * PageRows)
	for b.Loop() {
		dst = appendDelta(dst[:0], v)
	}
}

func BenchmarkHybrid(b *testing.B) {
	for _, w := range []uint{1, 5, 9, 20} {
		b.Run(fmt.Sprint(w), func(b *testing.B) {
			v := make([]uint32, PageRows)
			r := rand.New(rand.NewPCG(1, 1))
			for i := range v {
				v[i] = r.Uint32() & (1<<w - 1)
			}
			var dst []byte
			b.SetBytes(4 * PageRows)
			for b.Loop() {
				dst = appendHybrid(dst[:0], v, w)
			}
		})
	}
}

// BenchmarkFooter closes a file of many row groups, as a long trace makes it.
func BenchmarkFooter(b *testing.B) {
	table, cols := gpuLike(500)
	for b.Loop() {
		b.StopTimer()
		f, err := Create(discard{}, table, Options{})
		if err != nil {
			b.Fatal(err)
		}
		e := NewEncoder(table, Options{})
		for range 200 {
			c, err := e.Encode(500, cols)
			if err != nil {
				b.Fatal(err)
			}
			if err := f.Append(c); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if _, _, err := f.Close(testID, nil); err != nil {
			b.Fatal(err)
		}
	}
}
