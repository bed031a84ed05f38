package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tracelake/analyze/query"
	"tracelake/internal/regular"
	"tracelake/schema"
)

type analyzeOptions struct {
	run, trace, iteration, groupBy string
	rank, device, top              int64
	from, to                       time.Duration
	set                            []string
	format, devices                string
	list                           bool
	engine                         engineFlags

	given func(flag string) bool
}

func (o *analyzeOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.list, "list", false, "list the analyses")
	f.StringVar(&o.run, "run", "", "traces of this run only")
	f.Int64Var(&o.rank, "rank", 0, "traces of this rank only")
	f.StringVar(&o.trace, "trace", "", "the trace with this trace_id only")
	f.Int64Var(&o.device, "device", 0, "GPU work of this device only")
	f.StringVar(&o.iteration, "iteration", "", "calls, ranges and GPU work of iterations with this ID only")
	f.DurationVar(&o.from, "from", 0, "events that start at or after this time since the start of their trace, as in 1.5ms")
	f.DurationVar(&o.to, "to", 0, "events that start before this time")
	f.Int64Var(&o.top, "top", 0, "rows, where an analysis shows the largest only")
	f.StringVar(&o.groupBy, "by", "", "what to group by, where an analysis has a choice")
	f.StringArrayVar(&o.set, "set", nil, "NAME=VALUE: a parameter of the analysis. Repeatable")
	f.StringVar(&o.format, "format", string(query.Table), "table, csv, json (one object per line) or parquet")
	f.StringVar(&o.devices, "devices", "", "CSV file of what GPUs can do at most, on top of the known ones: gpu (a pattern for the name), gb_per_s, fp64, fp32, tf32, fp16, bf16, fp8, int8 (TFLOP/s)")
	o.engine.flags(f)
}

func newAnalyzeCommand() *cobra.Command {
	o := &analyzeOptions{}
	c := &cobra.Command{
		Use:   "analyze NAME LAKE",
		Short: "Answer one of the usual questions about a dataset",
		Long: `Run one of the analyses that come with tracelake over a dataset. Each is an SQL
file that any DuckDB with the dataset's _tracelake/views.sql runs as well;
"tracelake analyze NAME" without a dataset explains one.

Before the answer, a line on stderr says how far the traces can be trusted;
"analyze trust" has the details.

` + analysisList(),
		Example: `  tracelake analyze devices lake
  tracelake analyze kernels lake --run train --rank 0 --top 10 --by name+shape
  tracelake analyze idle lake --format csv > idle.csv`,
		Args: cobra.MaximumNArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			var names []string
			for _, a := range query.Analyses() {
				names = append(names, a.Name+"\t"+a.Title)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.given = func(flag string) bool { return c.Flags().Changed(flag) }
			out := c.OutOrStdout()
			if o.list || len(args) == 0 {
				if !o.list {
					return errUsage("analyze: give an analysis and a dataset\n\n%s", analysisList())
				}
				_, err := io.WriteString(out, analysisList())
				return err
			}
			a, ok := query.Lookup(args[0])
			if !ok {
				return errUsage("analyze: no analysis %q\n\n%s", args[0], analysisList())
			}
			if len(args) == 1 {
				_, err := io.WriteString(out, explain(a))
				return err
			}
			return runAnalyze(c.Context(), out, c.ErrOrStderr(), a, args[1], o)
		},
	}
	o.flags(c.Flags())
	return c
}

// analysisList lists the catalogue.
func analysisList() string {
	var b strings.Builder
	b.WriteString("Analyses:\n")
	for _, a := range query.Analyses() {
		fmt.Fprintf(&b, "  %-18s %s\n", a.Name, a.Title)
	}
	return b.String()
}

// explain prints the header of an analysis.
func explain(a query.Analysis) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n%s\n", a.Name, a.Title, a.Answers)
	if a.Needs != "" {
		fmt.Fprintf(&b, "\nNeeds %s.\n", a.Needs)
	}
	fmt.Fprintf(&b, "\n%s\n", a.SelectedBy())
	for _, part := range []struct {
		title string
		list  []query.ColumnDoc
	}{{"Parameters", a.Params}, {"Columns", a.Columns}} {
		if len(part.list) > 0 {
			fmt.Fprintf(&b, "\n%s:\n", part.title)
		}
		for _, c := range part.list {
			fmt.Fprintf(&b, "  %-24s %s\n", c.Name, c.Doc)
		}
	}
	return b.String()
}

// variables returns what the options select, by variable of the SQL.
func (o *analyzeOptions) variables(a query.Analysis) (map[string]any, error) {
	vars := map[string]any{}
	put := func(flag, name string, value any) {
		if o.given(flag) {
			vars[name] = value
		}
	}
	put("run", "run", o.run)
	put("rank", "rank", o.rank)
	put("trace", "trace", o.trace)
	put("device", "device", o.device)
	put("iteration", "iteration", o.iteration)
	put("from", "from_ns", o.from.Nanoseconds())
	put("to", "to_ns", o.to.Nanoseconds())
	put("top", "top", o.top)
	put("by", "group_by", o.groupBy)
	for _, s := range o.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, errUsage("analyze: --set %s: want NAME=VALUE", s)
		}
		vars[name] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			vars[name] = n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if err := a.Heeds(name); err != nil {
			return nil, errUsage("analyze: %v", err)
		}
		own := slices.ContainsFunc(a.Params, func(p query.ColumnDoc) bool { return p.Name == name })
		if !own && !slices.ContainsFunc(query.Selections, func(s query.Selection) bool { return s.Variable == name }) {
			return nil, errUsage("analyze: %s has no parameter %s", a.Name, strings.Replace(name, "group_by", "--by", 1))
		}
	}
	if o.devices != "" && !strings.Contains(a.SQL, "device_peaks") {
		return nil, errUsage("analyze: %s has no use for --devices", a.Name)
	}
	if o.given("top") && o.top < 0 {
		return nil, errUsage("analyze: --top must not be negative")
	}
	return vars, nil
}

func runAnalyze(ctx context.Context, stdout, stderr io.Writer, a query.Analysis, dir string, o *analyzeOptions) (err error) {
	format, err := query.ParseFormat(o.format)
	if err != nil {
		return errUsage("analyze: %v", err)
	}
	vars, err := o.variables(a)
	if err != nil {
		return err
	}
	o.engine.lazy = true
	db, err := openLake(ctx, dir, o.engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := o.setDevices(ctx, db); err != nil {
		return err
	}
	if err := db.Select(ctx, vars); err != nil {
		return err
	}
	if a.Name != "trust" {
		line, err := db.TrustLine(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(stderr, line)
	}
	rows, err := db.Analyze(ctx, a)
	if err != nil {
		return err
	}
	counted := &countedRows{Rows: rows}
	if err := query.Print(stdout, format, counted); err != nil {
		return err
	}
	if counted.n == 0 {
		fmt.Fprintln(stderr, noRows(a))
	}
	return nil
}

// countedRows counts the rows that are read from it.
type countedRows struct {
	query.Rows
	n int
}

func (r *countedRows) Next(values []any) error {
	err := r.Rows.Next(values)
	if err == nil {
		r.n++
	}
	return err
}

// noRows says what an answer without rows means.
func noRows(a query.Analysis) string {
	needs := a.Needs
	if needs == "" {
		needs = "GPU work"
	}
	return fmt.Sprintf("no rows: the selected traces lack what %s needs: %s", a.Name, needs)
}

// setDevices adds the GPUs of --devices to the known ones.
func (o *analyzeOptions) setDevices(ctx context.Context, db *query.DB) error {
	if o.devices == "" {
		return nil
	}
	file, err := regular.Open(o.devices)
	if err != nil {
		return errInput("analyze: --devices: %v", err)
	}
	defer file.Close()
	view, err := schema.DevicePeaksSQL(file)
	if err != nil {
		return errInput("analyze: --devices: %s: %v", o.devices, err)
	}
	if err := db.Exec(ctx, view); err != nil {
		return errInput("analyze: --devices: %s: %v", o.devices, err)
	}
	return nil
}
