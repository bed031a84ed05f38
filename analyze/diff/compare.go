package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Row compares one thing. Times and counts are means over the traces of a
// side; a trace without the thing counts as 0.
type Row struct {
	Key
	CountA, CountB float64
	TotalA, TotalB float64 // ns per trace
	MeanA, MeanB   float64 // ns per event, NaN where there is none
	Delta          float64 // of what is compared: TotalB - TotalA, of iterations MeanB - MeanA
	Percent        float64 // Delta of the value of A; NaN where that is 0
	ShareA, ShareB float64 // of all rows of the kind's unit, %
	TracesA        int     // that the row is judged by, of A: of iterations, those that have some
	TracesB        int     // the same of B
	Noise          *Noise  // nil with fewer than MinTraces of them on a side
	Verdict        string
}

// Report is a comparison.
type Report struct {
	TracesA, TracesB int
	Totals           []Row // what stands on top
	Rows             []Row // regressions first
}

// Names of totals.
const (
	TotalBusy      = "GPU busy"
	TotalSummed    = "GPU time, summed"
	TotalIteration = "iteration wall time"
)

// Compare compares two sides.
func Compare(a, b *Side) *Report {
	r := &Report{TracesA: len(a.traces), TracesB: len(b.traces)}

	total := func(name string, count, value func(totals) int64) {
		row := Row{Key: Key{Kind: "total", Name: name}}
		va, vb := column(a.traces, value), column(b.traces, value)
		row.fill(column(a.traces, count), va, column(b.traces, count), vb)
		row.judge(va, vb)
		r.Totals = append(r.Totals, row)
	}
	total(TotalBusy, func(t totals) int64 { return t.gpuEvents }, func(t totals) int64 { return t.busyNS })
	total(TotalSummed, func(t totals) int64 { return t.gpuEvents }, func(t totals) int64 { return t.summedNS })
	if row, ok := iterations(a, b); ok {
		r.Totals = append(r.Totals, row)
	}

	keys := map[Key]bool{}
	for _, s := range []*Side{a, b} {
		for k := range s.use {
			keys[k] = true
		}
	}
	sumA, sumB := map[bool]float64{}, map[bool]float64{} // by whether it is CPU time
	for k := range keys {
		row := Row{Key: k}
		ca, va := a.values(k)
		cb, vb := b.values(k)
		row.fill(ca, va, cb, vb)
		row.judge(va, vb)
		sumA[k.Kind == "op_cpu"] += row.TotalA
		sumB[k.Kind == "op_cpu"] += row.TotalB
		r.Rows = append(r.Rows, row)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		row.ShareA = 100 * row.TotalA / sumA[row.Kind == "op_cpu"]
		row.ShareB = 100 * row.TotalB / sumB[row.Kind == "op_cpu"]
	}
	slices.SortFunc(r.Rows, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.Delta, x.Delta), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Shape, y.Shape), cmp.Compare(x.Class, y.Class))
	})
	verdicts(r.Totals)
	verdicts(r.Rows)
	return r
}

// iterations compares mean lengths: a sample is the mean of a trace, traces
// without iterations are left out.
func iterations(a, b *Side) (Row, bool) {
	row := Row{Key: Key{Kind: "total", Name: TotalIteration}}
	means := func(s *Side) (out []float64) {
		for _, t := range s.traces {
			if t.iterations > 0 {
				out = append(out, float64(t.iterationNS)/float64(t.iterations))
			}
		}
		return out
	}
	va, vb := means(a), means(b)
	if len(va) == 0 && len(vb) == 0 {
		return row, false
	}
	count, ns := func(t totals) int64 { return t.iterations }, func(t totals) int64 { return t.iterationNS }
	row.fill(column(a.traces, count), column(a.traces, ns), column(b.traces, count), column(b.traces, ns))
	row.MeanA, row.MeanB = mean(va), mean(vb)
	row.Delta, row.Percent = math.NaN(), math.NaN()
	if len(va) > 0 && len(vb) > 0 {
		row.Delta = row.MeanB - row.MeanA
		row.Percent = percent(row.Delta, row.MeanA)
	}
	row.judge(va, vb)
	return row, true
}

func (s *Side) values(k Key) (count, total []float64) {
	count, total = make([]float64, len(s.traces)), make([]float64, len(s.traces))
	for i, u := range s.use[k] {
		count[i], total[i] = float64(u.count), float64(u.totalNS)
	}
	return count, total
}

func (r *Row) fill(countA, totalA, countB, totalB []float64) {
	r.CountA, r.TotalA, r.CountB, r.TotalB = mean(countA), mean(totalA), mean(countB), mean(totalB)
	r.MeanA, r.MeanB = r.TotalA/r.CountA, r.TotalB/r.CountB // 0/0 is NaN
	r.Delta = r.TotalB - r.TotalA
	r.Percent = percent(r.Delta, r.TotalA)
}

// judge compares two samples of one value per trace.
func (r *Row) judge(a, b []float64) {
	r.TracesA, r.TracesB = len(a), len(b)
	if min(r.TracesA, r.TracesB) >= MinTraces {
		n := welch(a, b)
		r.Noise = &n
	}
}

// verdicts judges the rows of one table. Holm's correction keeps the chance of
// any wrong verdict in the table at the level of one.
func verdicts(rows []Row) {
	var tested []*Row
	for i := range rows {
		row := &rows[i]
		switch {
		case row.Kind != "total" && row.CountA == 0:
			row.Verdict = "only in B"
		case row.Kind != "total" && row.CountB == 0:
			row.Verdict = "only in A"
		case row.Noise == nil:
			of := "traces"
			if row.Name == TotalIteration {
				of = "traces with iterations"
			}
			row.Verdict = fmt.Sprintf("no verdict: %d and %d %s, %d each needed", row.TracesA, row.TracesB, of, MinTraces)
		default:
			row.Verdict = "no difference"
			tested = append(tested, row)
		}
	}
	slices.SortStableFunc(tested, func(x, y *Row) int { return cmp.Compare(x.Noise.P, y.Noise.P) })
	for i, row := range tested {
		if row.Noise.P*float64(len(tested)-i) >= 1-confidence {
			break
		}
		row.Verdict = "faster"
		if row.Delta > 0 {
			row.Verdict = "slower"
		}
	}
}

func column(list []totals, get func(totals) int64) []float64 {
	out := make([]float64, len(list))
	for i, t := range list {
		out[i] = float64(get(t))
	}
	return out
}

func mean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func percent(delta, of float64) float64 {
	if of == 0 {
		return math.NaN()
	}
	return 100 * delta / of
}
