package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"tracelake/convert"
)

type benchOptions struct {
	repeat, procs int
	json          bool
	dir           string
}

func (o *benchOptions) flags(f *pflag.FlagSet) {
	f.IntVar(&o.repeat, "repeat", 3, "rounds; the fastest run of each stage counts")
	f.IntVarP(&o.procs, "jobs", "j", 0, "processors that a run may use (default: all)")
	f.BoolVar(&o.json, "json", false, "print one JSON object per file, with every run")
	f.StringVar(&o.dir, "temp-dir", "", "where datasets are written and removed again (default: the system's)")
}

func newBenchCommand() *cobra.Command {
	o := &benchOptions{}
	c := &cobra.Command{
		Use:   "bench FILE...",
		Short: "Measure what importing your traces takes",
		Long: `Import each trace several times, each time one stage further, every run in a
process of its own, and print what the stages take: CPU seconds, wall time, peak
memory, MB of raw JSON and events per second. Nothing is kept.

The stages: start (the program itself), text (read, decompress, digest; not for
exports of Nsight Systems), decode, link, write (the whole import, as convert
does it). A stage does all that the ones before it do; its own share is the
difference, and may be negative where that is smaller than the noise. Rounds
alternate between the stages; the fastest run counts.`,
		Args: arguments(1, -1, "name at least one file or directory"),
		RunE: func(c *cobra.Command, args []string) error { return runBench(c, o, args) },
	}
	o.flags(c.Flags())
	c.AddCommand(newBenchStageCommand())
	return c
}

// benchRun is what one process took.
type benchRun struct {
	CPU    float64 `json:"cpu_seconds"`
	Wall   float64 `json:"wall_seconds"`
	RSS    int64   `json:"peak_rss_bytes"`
	result stageResult
}

// benchStage is the runs of one stage.
type benchStage struct {
	Stage convert.Stage `json:"stage"`
	Best  benchRun      `json:"best"`    // the one with the least CPU
	Own   float64       `json:"own_cpu"` // CPU seconds over those of the stage before
	Runs  []benchRun    `json:"runs"`
}

// benchFile is what importing one input takes.
type benchFile struct {
	Path      string       `json:"path"`
	Bytes     int64        `json:"bytes"`
	TextBytes int64        `json:"json_bytes"`
	Events    int64        `json:"events"`
	GPUEvents int64        `json:"gpu_events"`
	Written   int64        `json:"written_bytes"`
	Outcome   string       `json:"outcome"`
	Procs     int          `json:"processors"`
	Stages    []benchStage `json:"stages"`
}

func runBench(c *cobra.Command, o *benchOptions, args []string) error {
	if o.repeat < 1 || o.procs < 0 {
		return errUsage("--repeat must be at least 1, and --jobs must not be negative")
	}
	found, err := convert.Discover(args)
	if err != nil {
		return errInput("%v", err)
	}
	code := exitOK
	for i, in := range found.Inputs {
		switch {
		case in.Path == convert.Stdin:
			return errUsage("bench: standard input can be read only once; name a file")
		case in.Tables:
			fmt.Fprintf(c.ErrOrStderr(), "notice    %s: tables of collect are not measured\n", in.Path)
			continue
		case in.Problem != "":
			return errInput("%s: %s", in.Path, in.Problem)
		}
		b, err := o.measure(c, in.Path)
		if err != nil {
			return err
		}
		if b.Outcome == "partial" {
			code = exitPartial
		}
		if o.json {
			if err := json.NewEncoder(c.OutOrStdout()).Encode(b); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(c.OutOrStdout())
		}
		b.print(c.OutOrStdout())
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

// measure runs the stages of one input, round after round.
func (o *benchOptions) measure(c *cobra.Command, path string) (*benchFile, error) {
	b := &benchFile{Path: path, Procs: o.procs}
	if b.Procs == 0 {
		b.Procs = runtime.GOMAXPROCS(0)
	}
	for _, s := range convert.StagesOf(path) {
		b.Stages = append(b.Stages, benchStage{Stage: s})
	}
	for round := range o.repeat {
		for i := range b.Stages {
			s := &b.Stages[i]
			tell(fmt.Sprintf("%s: round %d of %d, %s", path, round+1, o.repeat, s.Stage))
			run, err := o.run(c.Context(), s.Stage, path, b.Procs)
			tell("")
			if err != nil {
				return nil, err
			}
			s.add(run)
		}
	}
	for i := range b.Stages {
		if i > 0 {
			b.Stages[i].Own = b.Stages[i].Best.CPU - b.Stages[i-1].Best.CPU
		} else {
			b.Stages[i].Own = b.Stages[i].Best.CPU
		}
	}
	r := b.Stages[len(b.Stages)-1].Best.result
	b.Bytes, b.TextBytes, b.Events, b.GPUEvents, b.Written, b.Outcome = r.Bytes, r.TextBytes, r.Events, r.GPUEvents, r.Written, r.Outcome
	return b, nil
}

// tell shows on a terminal what runs, in place of what it showed before.
func tell(text string) {
	if term.IsTerminal(int(os.Stderr.Fd())) {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", text)
	}
}

func (s *benchStage) add(r benchRun) {
	s.Runs = append(s.Runs, r)
	if len(s.Runs) == 1 || r.CPU < s.Best.CPU {
		s.Best = r
	}
}

func (b *benchFile) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s, %s of text, %d events, %d GPU events, %s; written %s; %d processors\n",
		b.Path, formatSize(b.Bytes), formatSize(b.TextBytes), b.Events, b.GPUEvents, b.Outcome, formatSize(b.Written), b.Procs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\town CPU s\tCPU s\twall s\tpeak MiB\tMB/CPU s\tMB/s\tevents/s\t")
	last := &b.Stages[len(b.Stages)-1].Best
	for i := range b.Stages {
		s := &b.Stages[i]
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.3f\t%.0f\t", s.Stage, s.Own, s.Best.CPU, s.Best.Wall, float64(s.Best.RSS)/(1<<20))
		if s.Stage == convert.StageStart {
			fmt.Fprintln(t, "\t\t\t")
			continue
		}
		mb := float64(b.TextBytes) / 1e6
		fmt.Fprintf(t, "%.0f\t%.0f\t%.0f\t\n", per(mb, s.Best.CPU), per(mb, s.Best.Wall), per(float64(b.Events), s.Best.Wall))
	}
	_ = t.Flush()
	if n := len(b.Stages[0].Runs); n > 1 {
		most := 0.0
		for _, r := range b.Stages[len(b.Stages)-1].Runs {
			most = max(most, r.CPU)
		}
		fmt.Fprintf(w, "CPU of %d runs of the last stage: %.3f to %.3f s\n", n, last.CPU, most)
	}
}

func per(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

// stageResult is what the process of one run prints.
type stageResult struct {
	convert.Report
	Written int64 `json:"written_bytes"`
	PeakRSS int64 `json:"peak_rss_bytes"` // 0 where the system does not say
}

const stageCommand = "__stage" // no name that a file has

// newBenchStageCommand is the process of one run.
func newBenchStageCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:    stageCommand + " STAGE FILE",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			r := stageResult{}
			var err error
			if r.Report, err = convert.RunStage(c.Context(), convert.Stage(args[0]), args[1], convert.Options{Output: output, Writer: writer()}); err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			r.PeakRSS = peakRSS()
			if output != "" {
				if _, err := os.Stat(output); err == nil {
					if r.Written, err = convert.OutputBytes(output); err != nil {
						return err
					}
				}
			}
			return json.NewEncoder(c.OutOrStdout()).Encode(r)
		},
	}
	c.Flags().StringVar(&output, "output", "", "")
	return c
}
