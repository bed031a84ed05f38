package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tracelake/analyze/query"
	"tracelake/report"
)

type reportOptions struct {
	output, title, date string
	run, trace          string
	rank, device        int64
	top                 int64
	engine              engineFlags

	given func(flag string) bool
}

func newReportCommand() *cobra.Command {
	o := &reportOptions{}
	c := &cobra.Command{
		Use:   "report LAKE -o FILE",
		Short: "Write what the analyses say into one HTML file",
		Long: `Write a page with the answers to the usual questions: how far the traces can be
trusted, what each run, rank and GPU spent its time on, a timeline, kernels,
operators, iterations and collectives. It is one file that needs no network;
its figures are those of "tracelake analyze". LAKE is a dataset, a trace or a
directory of traces.

The page stays small whatever the dataset holds, and says what it leaves out;
docs/report.md has the limits.`,
		Example: `  tracelake report lake -o report.html
  tracelake report lake --run train --rank 0 --top 500 -o rank0.html
  tracelake report trace.json.gz -o trace.html`,
		Args: arguments(1, 1, "give a dataset"),
		RunE: func(c *cobra.Command, args []string) error {
			o.given = func(flag string) bool { return c.Flags().Changed(flag) }
			return runReport(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), args[0], o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "the HTML file; - is standard output (required)")
	f.StringVar(&o.title, "title", "", "title of the page (default: the name of the dataset)")
	f.StringVar(&o.date, "date", "", "date to show, as it is; without it equal datasets give equal pages")
	f.StringVar(&o.run, "run", "", "traces of this run only")
	f.Int64Var(&o.rank, "rank", 0, "traces of this rank only")
	f.StringVar(&o.trace, "trace", "", "the trace with this trace_id only")
	f.Int64Var(&o.device, "device", 0, "GPU work of this device only")
	f.Int64Var(&o.top, "top", 100, "rows of the tables of kernels and operators")
	o.engine.flags(f)
	return c
}

// selection returns what the options select, by variable of the SQL.
func (o *reportOptions) selection() map[string]any {
	vars := map[string]any{}
	for name, value := range map[string]any{"run": o.run, "rank": o.rank, "trace": o.trace, "device": o.device} {
		if o.given(name) {
			vars[name] = value
		}
	}
	return vars
}

// command is the command line that gives the same page, wherever it is written.
func (o *reportOptions) command(path string) string {
	words := []string{"tracelake", "report", path}
	for _, flag := range []struct {
		name string
		text string
	}{
		{"run", o.run},
		{"rank", strconv.FormatInt(o.rank, 10)},
		{"trace", o.trace},
		{"device", strconv.FormatInt(o.device, 10)},
		{"top", strconv.FormatInt(o.top, 10)},
		{"title", o.title},
		{"date", o.date},
	} {
		if o.given(flag.name) {
			words = append(words, "--"+flag.name, flag.text)
		}
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word where a shell would read it as something else.
func shellWord(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@%+", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

func runReport(ctx context.Context, stdout, stderr io.Writer, path string, o *reportOptions) error {
	if o.output == "" {
		return errUsage("report: -o FILE is required")
	}
	if err := report.CheckTop(o.top); err != nil {
		return errUsage("report: --top: %v", err)
	}
	title, shown := o.title, withoutParams(path)
	if title == "" {
		title = filepath.Base(filepath.Clean(shown))
	}
	return withDataset(ctx, path, o.engine, o.selection(), stderr, func(db *query.DB) error {
		r, err := report.Collect(ctx, db, report.Options{
			Title: title, Lake: shown, Command: o.command(shown), Version: writer(), Date: o.date, Top: int(o.top),
		})
		if err != nil {
			return err
		}
		if r.Traces() == 0 {
			return errInput("report: %s: no trace is selected", shown)
		}
		line, err := db.TrustLine(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(stderr, line)
		return writeTo(o.output, stdout, r.Write)
	})
}
