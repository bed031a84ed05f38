package diff

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// MinTraces is how many traces a side needs for a verdict.
const MinTraces = 5

// confidence is that of intervals; 1-confidence is the level of verdicts.
const confidence = 0.95

// Noise is what Welch's t-test says about the difference of two means.
type Noise struct{ Low, High, P float64 }

// welch compares mean(b) with mean(a): the interval of the difference and the
// two-sided p-value. Samples that do not vary at all differ for certain (p 0)
// or not at all (p 1).
func welch(a, b []float64) Noise {
	ma, va := stat.MeanVariance(a, nil)
	mb, vb := stat.MeanVariance(b, nil)
	d := mb - ma
	ea, eb := va/float64(len(a)), vb/float64(len(b))
	se := math.Sqrt(ea + eb)
	if se == 0 {
		n := Noise{d, d, 0}
		if d == 0 {
			n.P = 1
		}
		return n
	}
	df := (ea + eb) * (ea + eb) / (ea*ea/float64(len(a)-1) + eb*eb/float64(len(b)-1))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}
	half := t.Quantile((1+confidence)/2) * se
	return Noise{d - half, d + half, 2 * t.CDF(-math.Abs(d/se))}
}
