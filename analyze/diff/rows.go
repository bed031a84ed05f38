package diff

import (
	"io"
	"math"

	"tracelake/analyze/query"
)

// columns of the printed comparison.
var columns = []query.Column{
	{Name: "kind", Type: "VARCHAR"},
	{Name: "name", Type: "VARCHAR"},
	{Name: "shape", Type: "VARCHAR"},
	{Name: "class", Type: "VARCHAR"},
	{Name: "count_a", Type: "DOUBLE"},
	{Name: "count_b", Type: "DOUBLE"},
	{Name: "total_a_us", Type: "DOUBLE"},
	{Name: "total_b_us", Type: "DOUBLE"},
	{Name: "mean_a_us", Type: "DOUBLE"},
	{Name: "mean_b_us", Type: "DOUBLE"},
	{Name: "delta_us", Type: "DOUBLE"},
	{Name: "delta_pct", Type: "DOUBLE"},
	{Name: "ci_low_us", Type: "DOUBLE"},
	{Name: "ci_high_us", Type: "DOUBLE"},
	{Name: "p_value", Type: "DOUBLE"},
	{Name: "verdict", Type: "VARCHAR"},
}

// printed is a report as rows.
type printed struct{ rows []Row }

// Print returns, for query.Print, totals and the first top rows, all of them where top is 0.
func (r *Report) Print(top int) query.Rows {
	rows := r.Rows
	if top > 0 && len(rows) > top {
		rows = rows[:top]
	}
	return &printed{append(append([]Row(nil), r.Totals...), rows...)}
}

func (p *printed) Columns() []query.Column { return columns }
func (p *printed) Close() error            { return nil }

func (p *printed) Next(dest []any) error {
	if len(p.rows) == 0 {
		return io.EOF
	}
	r := p.rows[0]
	p.rows = p.rows[1:]
	us := func(ns float64) any { return number(ns/1e3, 3) }
	copy(dest, []any{
		r.Kind, r.Name, text(r.Shape), text(r.Class), number(r.CountA, 3), number(r.CountB, 3), us(r.TotalA), us(r.TotalB),
		us(r.MeanA), us(r.MeanB), us(r.Delta), number(r.Percent, 2), nil, nil, nil, r.Verdict,
	})
	if r.Noise != nil {
		dest[12], dest[13], dest[14] = us(r.Noise.Low), us(r.Noise.High), r.Noise.P
	}
	return nil
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// number rounds; what cannot be told is null.
func number(x float64, digits int) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	f := math.Pow10(digits)
	if math.Abs(x) > 1e12 {
		return x
	}
	return math.Round(x*f) / f
}
