package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"tracelake/collect"
)

func newCollectCommand() *cobra.Command {
	o := &collectOptions{}
	var onServer *serverOptions
	var parent int
	c := &cobra.Command{
		Use:   "collect --framework huggingface|vllm --model MODEL --output-dir DIR",
		Short: "Run tracers over models, each in its own process",
		Long: `Fetch models and run tracers on them, one process per model and tracer. What is
there already is skipped, so that an interrupted command resumes when it is
repeated; a job that crashes, hangs or takes too much memory costs no other job.
With --convert LAKE what a job leaves is imported as it ends. With --server URL a
running vLLM server is profiled instead.

Prints one line per job to standard error, or JSON lines to standard output with
--json. Exits with 3 where a job failed. docs/collect.md describes the output.`,
		Example: `  tracelake collect --framework huggingface --model Qwen/Qwen3-0.6B --output-dir out
  tracelake collect --framework vllm --model-list models.txt --output-dir out --jobs 4
  tracelake collect --server http://127.0.0.1:8000 --trace-dir /traces --duration 5 --convert lake
  tracelake collect plan --framework huggingface --model-list models.txt --output-dir out`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := dieWith(parent); err != nil {
				return err
			}
			if asked, err := onServer.asked(); err != nil || asked {
				if err == nil {
					err = runCollectServer(c, onServer)
				}
				return err
			}
			return runCollect(c, o, onServer)
		},
	}
	o.flags(c.Flags())
	onServer = addServerFlags(c.Flags())
	addDieWith(c.Flags(), &parent)
	c.AddCommand(newCollectPlanCommand(), newCollectDoctorCommand())
	return c
}

func newCollectPlanCommand() *cobra.Command {
	o := &collectOptions{}
	c := &cobra.Command{
		Use:   "plan",
		Short: "Say what collect would run, and why not the rest",
		Long:  `Takes the options of collect. Reads the model cache and status files; fetches and writes nothing.`,
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return runCollectPlan(c, o) },
	}
	o.flags(c.Flags())
	return c
}

func newCollectDoctorCommand() *cobra.Command {
	var python string
	var paths []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is installed, which tracers that allows, and how to install the rest",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := collect.Doctor(c.Context(), python, paths)
			if err != nil {
				return collectError(err)
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(d)
			}
			printDiagnosis(c.OutOrStdout(), d)
			return nil
		},
	}
	c.Flags().StringVar(&python, "python", "", "interpreter (default: the active environment, else python3)")
	c.Flags().StringArrayVar(&paths, "tracer-path", nil, "file or package with more tracers (repeatable)")
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}

func newWorkerCommand() *cobra.Command {
	o := &collectOptions{flat: true}
	c := &cobra.Command{
		Use:   "worker --framework huggingface|vllm --model-path DIR --tracer NAME --output-dir DIR",
		Short: "Run one tracer on a model in a directory",
		Long: `Run one tracer on a model in a local directory, without any download, supervised
as in collect. Results go to OUTPUT-DIR/TRACER. Exits with 1 where it fails.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return runWorker(c, o) },
	}
	o.workerFlags(c.Flags())
	return c
}

// noArguments refuses arguments as a usage error.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return errUsage("%s: %q is neither an option nor a subcommand; models are named with --model", c.Name(), args[0])
	}
	return nil
}

// collectError gives errors of the collector their exit codes.
func collectError(err error) error {
	var u *collect.UsageError
	switch {
	case errors.As(err, &u):
		return errUsage("%v", err)
	case errors.Is(err, collect.ErrOutput):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return errInput("%v", err)
	}
	return err
}

func runCollect(c *cobra.Command, o *collectOptions, to *serverOptions) error {
	if o.listTracers || o.describeTracer != "" {
		return collectError(showTracers(c.Context(), c.OutOrStdout(), o))
	}
	opts, err := o.options(c.Flags())
	if err != nil {
		return collectError(err)
	}
	if to.run != "" && to.lake == "" {
		return errUsage("collect: --run goes with --convert LAKE")
	}
	var lake *lakeImport
	if to.lake != "" {
		if lake, err = newLakeImport(to.lake, to.run, c.ErrOrStderr()); err != nil {
			return err
		}
		opts.OnFinished = func(j collect.Job, _ *collect.Status) error { return lake.finished(c.Context(), j.Dir) }
	}
	sum, reports, err := collectAll(c, o, opts)
	if err != nil {
		return collectError(err)
	}
	if lake != nil {
		if err := lake.rest(c.Context(), reports); err != nil {
			return err
		}
		if !o.quiet {
			fmt.Fprintf(c.ErrOrStderr(), "%d inputs imported into %s\n", lake.inputs, to.lake)
		}
	}
	if sum.Failed > 0 || lake != nil && lake.bad > 0 {
		return &exitError{code: exitPartial}
	}
	return nil
}

func collectAll(c *cobra.Command, o *collectOptions, opts collect.Options) (sum collect.Summary, reports []collect.Report, err error) {
	bar := newJobProgress(opts, o.json || o.quiet)
	enc := json.NewEncoder(c.OutOrStdout())
	opts.Planned = bar.planned
	opts.Notice = func(text string) { bar.print("notice    " + oneLine(text)) }
	opts.Report = func(r collect.Report) {
		bar.done()
		reports = append(reports, r)
		if o.json {
			_ = enc.Encode(r)
		} else if !o.quiet || r.Failed() {
			bar.print(jobLine(&r))
		}
	}
	sum, err = collect.Run(c.Context(), opts)
	bar.close()
	if err != nil {
		return sum, reports, err
	}
	if o.json {
		_ = enc.Encode(map[string]any{"summary": sum})
	} else if !o.quiet {
		fmt.Fprintln(c.ErrOrStderr(), summaryLine(&sum, opts.OutputDir))
	}
	return sum, reports, nil
}

func jobLine(r *collect.Report) string {
	line := fmt.Sprintf("%-9s %s %s %s", r.Outcome, r.Model, r.Tracer, r.Mode)
	if r.Seconds > 0 {
		line += fmt.Sprintf(": %.1f s", r.Seconds)
		if r.PeakRSS > 0 {
			line += ", " + formatSize(r.PeakRSS)
		}
	}
	if r.Message != "" {
		line += "\n          " + oneLine(r.Message)
	}
	return line
}

// oneLine makes text that comes from a worker fit for a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

func summaryLine(s *collect.Summary, dir string) string {
	names := make([]string, 0, len(s.Classes))
	for n := range s.Classes {
		names = append(names, n)
	}
	slices.Sort(names)
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = fmt.Sprintf("%d %s", s.Classes[n], n)
	}
	if len(parts) == 0 {
		parts = []string{"none ended"}
	}
	return fmt.Sprintf("%d models, %d of %d jobs: %s; in %.1f s, into %s", s.Models, s.Jobs, s.Planned, strings.Join(parts, ", "), s.Seconds, dir)
}

func runCollectPlan(c *cobra.Command, o *collectOptions) (err error) {
	opts, err := o.options(c.Flags())
	if err != nil {
		return collectError(err)
	}
	opts.Notice = func(text string) { fmt.Fprintln(c.ErrOrStderr(), "notice    "+text) }
	out := bufio.NewWriter(c.OutOrStdout())
	defer func() { err = errors.Join(err, out.Flush()) }()
	if o.json {
		enc := json.NewEncoder(out)
		return collectError(collect.Plan(c.Context(), opts, func(p collect.Planned) { _ = enc.Encode(p) }))
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	counts := map[string]int{}
	fmt.Fprintln(t, "action\tmodel\ttracer\tmode\treason")
	err = collect.Plan(c.Context(), opts, func(p collect.Planned) {
		counts[p.Action]++
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.Action, p.Model, p.Tracer, p.Mode, p.Reason)
	})
	if err != nil {
		return collectError(err)
	}
	_ = t.Flush()
	fmt.Fprintf(c.ErrOrStderr(), "%d to run, %d to download and run, %d to skip, %d cannot run\n",
		counts[collect.ActRun], counts[collect.ActDownload], counts[collect.ActSkip], counts[collect.ActFail])
	return nil
}

func runWorker(c *cobra.Command, o *collectOptions) error {
	opts, err := o.options(c.Flags())
	if err != nil {
		return collectError(err)
	}
	sum, _, err := collectAll(c, o, opts)
	if err != nil {
		return collectError(err)
	}
	if sum.Failed > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

// showTracers serves --list-tracers and --describe-tracer.
func showTracers(ctx context.Context, w io.Writer, o *collectOptions) error {
	path, err := collect.FindPython(o.python, os.Getenv)
	if err != nil {
		return err
	}
	py, err := collect.NewPython(path, os.Environ())
	if err != nil {
		return err
	}
	defer py.Close()
	if o.describeTracer != "" {
		return describeTracer(ctx, w, py, o)
	}
	list, notices, err := py.Tracers(ctx, o.tracerPath)
	if err != nil {
		return err
	}
	for _, n := range notices {
		fmt.Fprintln(shownStderr(), "notice   ", n)
	}
	if o.framework != "" {
		list = slices.DeleteFunc(list, func(t collect.Tracer) bool { return !slices.Contains(t.Frameworks, o.framework) })
	}
	if o.json {
		enc := json.NewEncoder(w)
		for _, t := range list {
			if err := enc.Encode(t); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "tracer\tframeworks\tmodes\tgroup\tdescription")
	for _, x := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", x.Name, strings.Join(x.Frameworks, ","), strings.Join(x.Modes, ","), orNone(x.ExclusiveGroup), firstSentence(x.Description))
	}
	return t.Flush()
}

// firstSentence keeps a table readable; --describe-tracer shows the rest.
func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, ". ")
	s, _, _ = strings.Cut(s, ": ")
	return strings.TrimSuffix(s, ".")
}

func describeTracer(ctx context.Context, w io.Writer, py *collect.Python, o *collectOptions) error {
	t, columns, err := py.Describe(ctx, o.describeTracer, o.tracerPath)
	var failed *collect.WorkerError
	if errors.As(err, &failed) && failed.Class == "bad_request" {
		return errUsage("%v", err)
	}
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(w).Encode(map[string]any{"tracer": t, "columns": columns})
	}
	fmt.Fprintf(w, "%s: %s\n", t.Name, t.Description)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, kv := range [][2]string{
		{"version", t.Version},
		{"frameworks", strings.Join(t.Frameworks, ", ")},
		{"modes", strings.Join(t.Modes, ", ")},
		{"exclusive group", orNone(t.ExclusiveGroup)},
		{"needs", strings.Join(t.Requires, ", ")},
		{"files", strings.Join(t.Files, ", ")},
		{"tables", strings.Join(t.Tables, ", ")},
		{"source", t.Source},
	} {
		if kv[1] != "" {
			fmt.Fprintf(tw, "  %s\t%s\n", kv[0], kv[1])
		}
	}
	return tw.Flush()
}

func printDiagnosis(w io.Writer, d *collect.Diagnosis) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "python\t%s (%s)\n", d.Probe.Python.Version, d.Python)
	names := make([]string, 0, len(d.Probe.Libraries))
	for n := range d.Probe.Libraries {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		lib, says := d.Probe.Libraries[n], "not installed"
		switch {
		case lib.Importable:
			says = lib.Version
		case lib.Version != "":
			says = lib.Version + ", does not import"
		}
		fmt.Fprintf(t, "%s\t%s\n", n, says)
	}
	gpus := "none"
	if d.Probe.CUDA.Available {
		gpus = fmt.Sprint(d.Probe.CUDA.Count)
		for _, g := range d.Probe.CUDA.Devices {
			gpus += ", " + g.Name
		}
	}
	fmt.Fprintf(t, "GPUs\t%s\n", gpus)
	if d.Probe.Compiler != nil {
		fmt.Fprintf(t, "C++ compiler\t%s\n", d.Probe.Compiler.Version)
	} else {
		fmt.Fprintf(t, "C++ compiler\tnone\n")
	}
	fmt.Fprintf(t, "isolation\t%s\n", d.Isolated)
	fmt.Fprintln(t, "\ntracer\tcan run")
	for _, u := range d.Tracers {
		says := "yes"
		if len(u.Lacks) > 0 {
			says = "no: " + strings.Join(u.Lacks, ", ")
		}
		fmt.Fprintf(t, "%s\t%s\n", u.Name, says)
	}
	_ = t.Flush()
	for _, n := range d.Notices {
		fmt.Fprintln(w, "\n"+n)
	}
	if len(d.Install) > 0 {
		fmt.Fprintln(w, "\nto install what is missing:")
		for _, cmd := range d.Install {
			fmt.Fprintln(w, "  "+cmd)
		}
	}
}
