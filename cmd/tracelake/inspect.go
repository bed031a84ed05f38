package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tracelake/convert"
)

type inspectOptions struct {
	json, strict bool
	jobs         int
	patterns     []string
}

func (o *inspectOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.json, "json", false, "print one JSON object per file")
	f.BoolVar(&o.strict, "strict", false, "reject every input that is not ok")
	f.IntVarP(&o.jobs, "jobs", "j", 0, "goroutines that compute (default: one per processor)")
	f.StringArrayVar(&o.patterns, "range-pattern", nil, "[PRODUCER=]REGEXP of ranges that mark iterations (repeatable)")
}

func newInspectCommand() *cobra.Command {
	o := &inspectOptions{}
	c := &cobra.Command{
		Use:   "inspect FILE...",
		Short: "Say what is in a trace, without writing anything",
		Long: `Read traces and print header, event counts, devices, links and problems. Exits
with 5 where a file is no trace, and with 3 where one is partial.`,
		Args: arguments(1, -1, "name at least one file"),
		RunE: func(c *cobra.Command, args []string) error { return runInspect(c, o, args) },
	}
	o.flags(c.Flags())
	return c
}

func runInspect(c *cobra.Command, o *inspectOptions, args []string) error {
	marks, err := parsePatterns(o.patterns)
	if err != nil {
		return err
	}
	found, err := convert.DiscoverIn(c.Context(), args)
	if err != nil {
		return errInput("%v", err)
	}
	code := exitOK
	for _, in := range found.Inputs {
		x, err := convert.InspectInput(c.Context(), in, convert.Options{Workers: o.jobs, Strict: o.strict, Marks: marks})
		if err != nil {
			if c.Context().Err() != nil {
				return err
			}
			return errInput("%v", naming(in.Path, err))
		}
		switch {
		case x.Outcome == "rejected":
			code = exitInput
		case x.Bad() && code == exitOK:
			code = exitPartial
		}
		if o.json {
			if err := json.NewEncoder(c.OutOrStdout()).Encode(x); err != nil {
				return err
			}
			continue
		}
		printInspection(c.OutOrStdout(), x)
	}
	if code != exitOK {
		return &exitError{code: code}
	}
	return nil
}

func printInspection(w io.Writer, x *convert.Inspection) {
	fmt.Fprintf(w, "%s\n  outcome: %s", x.Path, x.Outcome)
	if x.Reason != "" {
		fmt.Fprintf(w, " (%s)", x.Reason)
	}
	fmt.Fprintln(w)
	if x.Outcome == "rejected" && x.Events == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(k, v string) {
		if v != "" {
			fmt.Fprintf(t, "  %s\t%s\n", k, v)
		}
	}
	row("size", fmt.Sprintf("%s stored, %s of JSON", formatSize(x.Bytes), formatSize(x.TextBytes)))
	rank := "none"
	if x.Rank != nil {
		rank = fmt.Sprintf("%d (%s)", *x.Rank, x.RankSource)
	}
	if x.WorldSize != nil {
		rank += fmt.Sprintf(" of %d", *x.WorldSize)
	}
	row("rank", rank)
	row("clock", x.Clock)
	if x.StartNS != nil {
		row("span", fmt.Sprintf("%d .. %d ns (%.3f ms)", *x.StartNS, *x.EndNS, float64(*x.EndNS-*x.StartNS)/1e6))
	}
	h := &x.Header
	for _, kv := range [][2]string{
		{"host", h.Host},
		{"trace id", h.TraceID},
		{"vLLM", h.VLLMVersion},
		{"CUPTI", h.CUPTI},
		{"CUDA runtime", h.CUDARuntime},
		{"CUDA driver", h.CUDADriver},
		{"HIP runtime", h.HIPRuntime},
		{"backend", h.Backend},
		{"written to", h.TraceName},
	} {
		row(kv[0], kv[1])
	}
	row("GPU events", fmt.Sprintf("%d, %d linked, %d in %d iterations of %s", x.GPUEvents, x.Linked, x.InIter, x.Iterations, orNone(x.Producer)))
	_ = t.Flush()
	if len(x.Devices) > 0 {
		fmt.Fprintln(w, "  devices:")
		t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "\tdevice\tGPU events\tbusy ms\tsummed ms\texcluded\t")
		for _, d := range x.Devices {
			name := "unknown"
			if d.Ordinal != nil {
				name = fmt.Sprint(*d.Ordinal)
			}
			fmt.Fprintf(t, "\t%s\t%d\t%.3f\t%.3f\t%d\t\n", name, d.Events, float64(d.BusyNS)/1e6, float64(d.SummedNS)/1e6, d.Excluded)
		}
		_ = t.Flush()
	}
	fmt.Fprintln(w, "  events:")
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, k := range x.Kinds {
		fmt.Fprintf(t, "\t%d\t%s\t%s\t\n", k.Events, orNone(k.Phase), orNone(k.Category))
	}
	_ = t.Flush()
	if len(x.Diags) > 0 {
		fmt.Fprintln(w, "  noticed:")
		for _, d := range x.Diags {
			place := ""
			if d.ByteOffset != nil {
				place = fmt.Sprintf(" at byte %d", *d.ByteOffset)
			}
			fmt.Fprintf(w, "    %s %s (%d)%s: %s\n", d.Severity, d.Code, d.Count, place, d.Message)
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
