package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tracelake/analyze/activity"
	"tracelake/analyze/execlog"
	"tracelake/analyze/link"
	"tracelake/convert"
	"tracelake/internal/store"
	"tracelake/schema/columnar"
)

type convertOptions struct {
	output, run, format, compression, detail, sqlite string
	jobs, rowGroup                                   int
	chunk, maxMemory, target                         sizeValue
	shard                                            string
	force, strict, json, quiet, list, member         bool
	dieWith                                          int
	tables, patterns, deviceUUIDs                    []string
	uuidsByPID, executionDir                         string
}

func (o *convertOptions) flags(f *pflag.FlagSet) {
	o.chunk, o.maxMemory = convert.DefaultChunkSize, convert.DefaultMaxMemory
	f.StringVarP(&o.output, "output", "o", "", "dataset: a directory, or a URL of an object store (required)")
	f.StringVar(&o.run, "run", "", "run to file the traces under (default: name of their directory)")
	f.IntVarP(&o.jobs, "jobs", "j", 0, "goroutines that compute (default: one per processor)")
	f.Var(&o.maxMemory, "max-memory", "memory that files read at once may take together, GPU events of one file apart")
	f.BoolVar(&o.force, "force", false, "import again what is in the dataset already")
	f.BoolVar(&o.strict, "strict", false, "reject every input that is not ok: repaired and partial ones, too")
	f.StringVar(&o.format, "format", "parquet", "parquet, or arrow (Arrow IPC files; reads every input twice, and sql cannot open them)")
	f.StringVar(&o.compression, "compression", "zstd", "zstd, snappy or none")
	f.IntVar(&o.rowGroup, "row-group", 0, "rows per row group (default 65536)")
	f.Var(&o.chunk, "chunk-size", "text that one worker decodes at a time")
	f.StringVar(&o.detail, "detail", "launch", "activities per launch or per kernel")
	f.StringVar(&o.sqlite, "sqlite", "scan", "how SQLite exports of Nsight Systems are read: scan, or library (slower, the same rows)")
	f.Var(&o.target, "target-file-size", "merge small files of the runs to about this size at the end, as compact does (default: leave one file per trace and table)")
	f.StringVar(&o.shard, "shard", "", "I/N, convert only the inputs of share I of N, from 0/N to N-1/N, as told by their absolute paths (those of a job of collect together)")
	f.BoolVar(&o.list, "list", false, "convert nothing: print what is not in the dataset yet, and do once what --member leaves")
	f.BoolVar(&o.member, "member", false, "be one of many processes that fill the dataset: read nothing of what others wrote, and leave what concerns all of it to --list")
	addDieWith(f, &o.dieWith)
	f.StringSliceVar(&o.tables, "tables", nil, "tables to write (default: all)")
	f.StringArrayVar(&o.patterns, "range-pattern", nil, "[PRODUCER=]REGEXP of ranges that mark iterations; the first group is the ID (repeatable)")
	f.StringArrayVar(&o.deviceUUIDs, "device-uuid", nil, "[TRACE:]INDEX=UUID of a device (repeatable)")
	f.StringVar(&o.uuidsByPID, "device-uuids-by-pid", "", "JSON file {PID: {INDEX: UUID}}")
	f.StringVar(&o.executionDir, "vllm-execution-dir", "", "execution log of vLLM workers, which tells the GPUs of processes; --device-uuid wins")
	f.BoolVar(&o.json, "json", false, "print one JSON object per input, then a summary")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print problems only")
}

func newConvertCommand() *cobra.Command {
	o := &convertOptions{}
	c := &cobra.Command{
		Use:   "convert INPUT... -o LAKE",
		Short: "Import traces into a dataset",
		Long: `Import Kineto traces (.json, .gz, .zst) and exports of Nsight Systems (SQLite,
parquetdir, arrowdir, Arrow, JSON lines): files, directories, globs, - for
standard input, into a dataset of Parquet files. What is in the dataset already is
skipped, so that an interrupted command resumes when it is repeated. A bad input
never stops the others.

Prints one line per input to standard error, or JSON lines to standard output
with --json. Exits with 3 where an input was partial, rejected or unreadable.`,
		Args: arguments(1, -1, "name at least one file or directory"),
		RunE: func(c *cobra.Command, args []string) error { return runConvert(c, o, args) },
	}
	o.flags(c.Flags())
	return c
}

func (o *convertOptions) options(inputs []convert.Input) (convert.Options, error) {
	out := convert.Options{
		Output: o.output, Run: o.run, Workers: o.jobs, MaxMemory: int64(o.maxMemory), Force: o.force, Strict: o.strict,
		RowGroup: o.rowGroup, ChunkSize: int(o.chunk), Detail: o.detail, Tables: o.tables, Patterns: o.patterns, Writer: writer(), TargetFileSize: int64(o.target), Member: o.member,
	}
	if o.output == "" {
		return out, errUsage("convert: say where to with -o LAKE")
	}
	if o.jobs < 0 || o.rowGroup < 0 || o.chunk <= 0 || o.chunk > 1<<30 {
		return out, errUsage("--jobs and --row-group must not be negative, and --chunk-size lies between 1 B and 1 GiB")
	}
	if o.list && (o.member || o.force) {
		return out, errUsage("--list converts nothing: it goes with neither --member nor --force")
	}
	if o.sqlite != "scan" && o.sqlite != "library" {
		return out, errUsage("--sqlite %s: want scan or library", o.sqlite)
	}
	out.Library = o.sqlite == "library"
	var err error
	if out.Format, err = columnar.ParseFormat(o.format); err != nil {
		return out, errUsage("--format: %v", err)
	}
	if out.Compression, err = columnar.ParseCompression(o.compression); err != nil {
		return out, errUsage("--compression: %v", err)
	}
	if out.Format == columnar.Arrow && o.target > 0 {
		return out, errUsage("--target-file-size: Arrow files are not merged")
	}
	if out.Format == columnar.Arrow && out.Compression == columnar.Snappy {
		return out, errUsage("--compression snappy: Arrow files know zstd and none")
	}
	if out.Marks, err = parsePatterns(o.patterns); err != nil {
		return out, err
	}
	paths := make([]string, len(inputs))
	for i, in := range inputs {
		paths[i] = in.Path
	}
	if len(o.deviceUUIDs) > 0 {
		u, err := activity.ParseDeviceUUIDs(o.deviceUUIDs)
		if err != nil {
			return out, err
		}
		if err := u.Bind(paths); err != nil {
			return out, err
		}
		out.DeviceUUIDs = u.For
	}
	if o.uuidsByPID != "" {
		if out.UUIDsByPID, err = activity.ReadDeviceUUIDsByPID(o.uuidsByPID); err != nil {
			return out, err
		}
	}
	out.Execution, err = readExecutionLog(o.executionDir, o.uuidsByPID, shownStderr())
	return out, err
}

// readExecutionLog reads the directory of --vllm-execution-dir, if one is
// given.
func readExecutionLog(dir, uuidsByPID string, log io.Writer) (*execlog.Log, error) {
	if dir == "" {
		return nil, nil
	}
	if uuidsByPID != "" {
		return nil, errUsage("--vllm-execution-dir and --device-uuids-by-pid both tell the GPUs of processes; give one")
	}
	l, err := execlog.Read(dir)
	if err != nil {
		return nil, errInput("--vllm-execution-dir: %v", err)
	}
	if l.Bad > 0 {
		fmt.Fprintf(log, "notice    --vllm-execution-dir: %d lines or files were left out, first %s\n", l.Bad, l.Notes[0])
	}
	if len(l.Workers) == 0 {
		fmt.Fprintf(log, "notice    --vllm-execution-dir: %s holds no worker\n", dir)
	}
	return l, nil
}

// parsePatterns reads [PRODUCER=]REGEXP.
func parsePatterns(list []string) (link.Marks, error) {
	var m link.Marks
	for _, p := range list {
		producer, expr := "", p
		if k, v, ok := strings.Cut(p, "="); ok && regexp.MustCompile(`^[A-Za-z][\w.-]*$`).MatchString(k) {
			producer, expr = k, v
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			return m, errUsage("--range-pattern %q: %v", p, err)
		}
		if re.NumSubexp() < 1 {
			return m, errUsage("--range-pattern %q: mark the ID with a group, as in step_(\\d+)", p)
		}
		m.UserPatterns = append(m.UserPatterns, link.Pattern{Producer: producer, Expr: re})
	}
	return m, nil
}

func runConvert(c *cobra.Command, o *convertOptions, args []string) error {
	if err := dieWith(o.dieWith); err != nil {
		return err
	}
	found, err := convert.DiscoverIn(c.Context(), args)
	if err != nil {
		return errInput("%v", err)
	}
	opts, err := o.options(found.Inputs)
	if err != nil {
		return err
	}
	if o.shard != "" {
		i, n, err := parseShard(o.shard)
		if err != nil {
			return err
		}
		found = found.Shard(i, n)
	}
	if o.list {
		return runList(c, o, opts, found)
	}
	bar := newProgress(found.Inputs, o.json || o.quiet)
	opts.Progress = bar.read
	enc := json.NewEncoder(c.OutOrStdout())
	sum, err := convert.Run(c.Context(), found, opts, func(r convert.Report) {
		bar.done(r.Path)
		if o.json {
			_ = enc.Encode(r)
			return
		}
		if !o.quiet || r.Bad() {
			bar.print(reportLine(&r))
		}
	})
	bar.close()
	if err != nil {
		return err
	}
	if o.json {
		_ = enc.Encode(map[string]any{"summary": sum})
	} else {
		printSummary(c.ErrOrStderr(), &sum, o)
	}
	if sum.Bad() {
		return &exitError{code: exitPartial}
	}
	return nil
}

// runList prints what is to be converted: one unit per line, or every input as a
// JSON object.
func runList(c *cobra.Command, o *convertOptions, opts convert.Options, found convert.Found) error {
	importer, err := convert.Open(opts)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.OutOrStdout())
	enc := json.NewEncoder(out)
	last := ""
	sum, err := importer.List(c.Context(), found, func(r convert.Report) {
		switch {
		case o.json:
			_ = enc.Encode(r)
		case r.Failed != "":
			fmt.Fprintln(c.ErrOrStderr(), reportLine(&r))
		case r.Skipped == "" && r.Unit != last:
			last = r.Unit
			fmt.Fprintln(out, r.Unit)
		}
	})
	if err != nil {
		return err
	}
	if o.json {
		_ = enc.Encode(map[string]any{"summary": sum})
	} else {
		for _, n := range sum.Notices {
			fmt.Fprintln(c.ErrOrStderr(), "notice   ", n)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if sum.Bad() {
		return &exitError{code: exitPartial}
	}
	return nil
}

// parseShard reads I/N.
func parseShard(text string) (i, n int, err error) {
	a, b, ok := strings.Cut(text, "/")
	i, errI := strconv.Atoi(a)
	n, errN := strconv.Atoi(b)
	if !ok || errI != nil || errN != nil || i < 0 || i >= n {
		return 0, 0, errUsage("--shard %s: want I/N with I from 0 to N-1", text)
	}
	return i, n, nil
}

func reportLine(r *convert.Report) string {
	path := shown(r.Path, "")
	if r.Failed != "" {
		return fmt.Sprintf("failed    %s: %s", path, r.Failed)
	}
	if r.Skipped != "" {
		word := "skipped"
		if r.Skipped != convert.AlreadyThere {
			word = "duplicate"
		}
		return fmt.Sprintf("%-9s %s: %s", word, path, r.Skipped)
	}
	if r.Outcome == "rejected" {
		return fmt.Sprintf("rejected  %s: %s", path, r.Reason)
	}
	if r.Kind == convert.KindTables {
		return tablesLine(r)
	}
	line := fmt.Sprintf("%-9s %s: %d events, %d GPU events", r.Outcome, path, r.Events, r.GPUEvents)
	if r.GPUEvents > 0 {
		line += fmt.Sprintf(" (%.1f%% linked, %.1f%% in an iteration)", pct(r.Linked, r.GPUEvents), pct(r.InIter, r.GPUEvents))
	}
	if r.Seconds > 0 {
		line += fmt.Sprintf(", %.0f MB/s", float64(r.TextBytes)/1e6/r.Seconds)
	}
	warnings := int64(0)
	for _, d := range r.Diags {
		if d.Severity != "info" {
			warnings++
		}
	}
	if warnings > 0 {
		line += fmt.Sprintf(", %d notices", warnings)
	}
	if r.Outcome != "ok" {
		line += "\n          " + r.Reason
		if r.LostEvents > 0 {
			line += fmt.Sprintf("; %d events lost", r.LostEvents)
		}
		if r.Repairs > 0 {
			line += fmt.Sprintf("; %d repairs", r.Repairs)
		}
	}
	return line
}

// tablesLine reports the tables of a job of collect.
func tablesLine(r *convert.Report) string {
	rows, tables := int64(0), 0
	for name, n := range r.Rows {
		if name != "traces" && name != "diagnostics" {
			rows += n
			tables++
		}
	}
	line := fmt.Sprintf("%-9s %s: %d rows in %d tables", r.Outcome, shown(r.Path, ""), rows, tables)
	for _, d := range r.Diags {
		if d.Severity != "info" {
			line += fmt.Sprintf("\n          %s: %s", d.Code, d.Message)
			if d.Count > 1 {
				line += fmt.Sprintf(" (%d)", d.Count)
			}
		}
	}
	return line
}

func pct(a, b int64) float64 { return 100 * float64(a) / float64(b) }

func printSummary(w io.Writer, s *convert.Summary, o *convertOptions) {
	for _, n := range s.Notices {
		fmt.Fprintln(w, "notice   ", n)
	}
	if o.quiet {
		return
	}
	if s.Compacted != nil && s.Compacted.Merged > 0 {
		fmt.Fprintln(w, compactedLine(s.Compacted))
	}
	if s.EmptyJobs > 0 {
		fmt.Fprintf(w, "%d jobs of collect left neither traces nor tables\n", s.EmptyJobs)
	}
	if s.Superseded > 0 {
		fmt.Fprintf(w, "%d traces of earlier attempts of jobs were replaced\n", s.Superseded)
	}
	if s.Replaced > 0 {
		fmt.Fprintf(w, "%d traces of files that hold another one by now were taken out\n", s.Replaced)
	}
	if s.Ignored > 0 {
		fmt.Fprintf(w, "%d files do not look like traces and were ignored\n", s.Ignored)
	}
	fmt.Fprintf(w, "%d inputs: %d ok, %d repaired, %d partial, %d rejected, %d failed, %d skipped; %d events, %d GPU events in %.1f s, into %s\n",
		s.Inputs, s.OK, s.Repaired, s.Partial, s.Rejected, s.Failed, s.Skipped, s.Events, s.GPUEvents, s.Elapsed.Seconds(), store.Clean(o.output))
}
