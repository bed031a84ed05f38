package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tracelake/analyze/diff"
	"tracelake/analyze/query"
)

// exitRegression tells CI that a limit of --fail-on was broken.
const exitRegression = 4

type diffOptions struct {
	by, format string
	top        int
	failOn     []string
	minShare   float64
	engine     engineFlags
}

func newDiffCommand() *cobra.Command {
	o := &diffOptions{}
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare traces: what became slower?",
		Long: `Compare two sides. A side is a dataset, a trace, or a directory of traces; a
part of it is selected as in lake:run=before or lake:run=train,rank=0 (run,
trace, rank, device, iteration). Traces are converted to a temporary dataset.

Kernels, copies and sets match by name, grid and block, and class; operators
(--by ops) by name and input sizes. Counts and totals are means per trace.
Totals come first, then regressions, largest first. With at least 5 traces on
each side, Welch's t-test over the traces gives the 95 % interval of the
difference and a p-value, and Holm's correction the verdict; with fewer there is
no verdict. Ranks of one run are not independent: better compare several runs.

--fail-on '>5%' exits with 4 where the GPU busy time grew by more than 5 %;
'summed>5%' looks at summed GPU time, 'iteration>5%' at the mean length of
iterations, 'kernel>5%' at every matched row with --min-share of the time.
A row with a verdict breaks a limit only where that is "slower"; of one without,
which too few traces have, the plain figures count.`,
		Example: `  tracelake diff lake:run=before lake:run=after --top 20
  tracelake diff old.json.gz new.json.gz --fail-on '>5%' --fail-on 'kernel>20%'`,
		Args: arguments(2, 2, "give two sides"),
		RunE: func(c *cobra.Command, args []string) error {
			return runDiff(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), args[0], args[1], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.by, "by", string(diff.Kernels), "kernels or ops")
	f.StringVar(&o.format, "format", string(query.Table), "table, csv or json (one object per line)")
	f.IntVar(&o.top, "top", 25, "rows below the totals; 0 for all")
	f.StringArrayVar(&o.failOn, "fail-on", nil, "[gpu|summed|iteration|kernel]>N%: exit with 4 where this grew by more. Repeatable")
	f.Float64Var(&o.minShare, "min-share", 1, "share of the time of a side, in %, that kernel>N% looks at")
	o.engine.flags(f)
	return c
}

var (
	sideText  = regexp.MustCompile(`^(.+?):((?:run|trace|rank|device|iteration)=.*)$`)
	nextField = regexp.MustCompile(`,(?:run|trace|rank|device|iteration)=`)
)

// parseSide takes a side apart: PATH or PATH:NAME=VALUE,…. A path that exists
// is one as a whole.
func parseSide(text string) (path string, vars map[string]any, err error) {
	vars = map[string]any{}
	if _, err := os.Stat(text); err == nil {
		return text, vars, nil
	}
	m := sideText.FindStringSubmatch(text)
	if m == nil {
		return text, vars, nil
	}
	rest := m[2]
	for rest != "" {
		field := rest
		if at := nextField.FindStringIndex(rest); at != nil {
			field, rest = rest[:at[0]], rest[at[0]+1:]
		} else {
			rest = ""
		}
		name, value, _ := strings.Cut(field, "=")
		vars[name] = value
		if name == "rank" || name == "device" {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return "", nil, errUsage("diff: %s: %s is a number", text, name)
			}
			vars[name] = n
		}
	}
	return m[1], vars, nil
}

func runDiff(ctx context.Context, stdout, stderr io.Writer, a, b string, o *diffOptions) error {
	format, err := query.ParseFormat(o.format)
	if err != nil || format == query.Parquet {
		return errUsage("diff: --format %s: want table, csv or json", o.format)
	}
	if o.by != string(diff.Kernels) && o.by != string(diff.Ops) {
		return errUsage("diff: --by %s: want kernels or ops", o.by)
	}
	if o.top < 0 || o.engine.threads < 0 || o.minShare < 0 {
		return errUsage("diff: --top, --threads and --min-share must not be negative")
	}
	var gates []diff.Gate
	for _, text := range o.failOn {
		g, err := diff.ParseGate(text)
		if err != nil {
			return errUsage("diff: --fail-on %v", err)
		}
		gates = append(gates, g)
	}
	var sides [2]*diff.Side
	for i, text := range []string{a, b} {
		if sides[i], err = o.side(ctx, stderr, "AB"[i:i+1], text); err != nil {
			return err
		}
	}
	report := diff.Compare(sides[0], sides[1])
	if report.TracesA < diff.MinTraces || report.TracesB < diff.MinTraces {
		fmt.Fprintf(stderr, "no verdict: %d and %d traces; %d on each side tell a change from noise\n", report.TracesA, report.TracesB, diff.MinTraces)
	}
	if err := query.Print(stdout, format, report.Print(o.top)); err != nil {
		return err
	}
	var broken []string
	for _, g := range gates {
		found, err := g.Check(report, o.minShare)
		if err != nil {
			return fmt.Errorf("diff: %w", err)
		}
		broken = append(broken, found...)
	}
	if len(broken) > 0 {
		return &exitError{exitRegression, "diff: slower than allowed:\n  " + strings.Join(broken, "\n  ")}
	}
	return nil
}

// side reads one side.
func (o *diffOptions) side(ctx context.Context, stderr io.Writer, name, text string) (side *diff.Side, err error) {
	path, vars, err := parseSide(text)
	if err != nil {
		return nil, err
	}
	err = withDataset(ctx, path, o.engine, vars, stderr, func(db *query.DB) error {
		line, err := db.TrustLine(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(stderr, "%s %s: %s\n", name, text, line)
		side, err = diff.ReadSide(ctx, db, diff.By(o.by))
		return err
	})
	if err == nil && side.Traces() == 0 {
		return nil, errInput("diff: %s: %s selects no trace", name, text)
	}
	return side, err
}
