package diff

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Gate is a limit that a comparison must keep.
type Gate struct {
	Text    string
	what    string
	percent float64
}

var gateText = regexp.MustCompile(`^\s*(gpu|summed|iteration|kernel)?\s*>\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*$`)

// ParseGate reads [gpu|summed|iteration|kernel]>N%.
func ParseGate(text string) (Gate, error) {
	m := gateText.FindStringSubmatch(text)
	if m == nil {
		return Gate{}, fmt.Errorf("%q: want >N%%, gpu>N%%, summed>N%%, iteration>N%% or kernel>N%%", text)
	}
	g := Gate{Text: text, what: m[1]}
	if g.what == "" {
		g.what = "gpu"
	}
	g.percent, _ = strconv.ParseFloat(m[2], 64)
	return g, nil
}

// Check returns what breaks the limit. A regression that is no more than noise
// breaks none; the plain figures of a row count where too few traces have it to
// tell. minShare is the share of the time of a side, in %, below which a
// kernel or operator does not count. An error says that the comparison has no
// such figure.
func (g Gate) Check(r *Report, minShare float64) ([]string, error) {
	var list []Row
	name := map[string]string{"gpu": TotalBusy, "summed": TotalSummed, "iteration": TotalIteration}[g.what]
	if g.what == "kernel" {
		for _, row := range r.Rows {
			if row.CountA > 0 && row.CountB > 0 && max(row.ShareA, row.ShareB) >= minShare {
				list = append(list, row)
			}
		}
		if len(r.Rows) == 0 {
			return nil, fmt.Errorf("--fail-on %s: neither side has any", g.Text)
		}
	} else {
		for _, row := range r.Totals {
			if row.Name == name && !math.IsNaN(row.Percent) {
				list = append(list, row)
			}
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("--fail-on %s: no %s to compare on both sides", g.Text, name)
		}
	}
	var broken []string
	for _, row := range list {
		if row.Percent <= g.percent || row.Noise != nil && row.Verdict != "slower" {
			continue
		}
		text := fmt.Sprintf("%s %s: +%.2f%%, limit %g%%", row.Kind, row.Name, row.Percent, g.percent)
		if row.Noise == nil {
			text += "; " + row.Verdict
		}
		broken = append(broken, text)
	}
	return broken, nil
}
