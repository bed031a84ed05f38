package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"tracelake/analyze/query"
	"tracelake/analyze/slice"
)

type sliceOptions struct {
	run, trace, iteration, output string
	rank, device                  int64
	from, to                      time.Duration
	keepOverlaps                  bool
	engine                        engineFlags

	given func(flag string) bool
}

func newSliceCommand() *cobra.Command {
	o := &sliceOptions{}
	c := &cobra.Command{
		Use:   "slice LAKE|FILE -o OUT",
		Short: "Write a part of a trace for Perfetto and other viewers",
		Long: `Write a part of one trace, of a dataset or a file, as a Chrome trace that
Perfetto, chrome://tracing and readers of Kineto traces open. The suffix of OUT
tells the compression: .json, .json.gz or .json.zst; - is standard output.

An event is in the part where it overlaps the window. GPU work brings along the
call that launched it, the range that gives it its iteration and the operator
that caused it, also where these lie outside. Times are never cut.`,
		Example: `  tracelake slice lake --rank 3 --iteration 12 -o step12.json.gz
  tracelake slice huge.pt.trace.json.gz --from 1.5s --to 1.6s -o part.json.gz`,
		Args: arguments(1, 1, "give one dataset or trace"),
		RunE: func(c *cobra.Command, args []string) error {
			o.given = func(flag string) bool { return c.Flags().Changed(flag) }
			return runSlice(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), args[0], o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "file to write; - is standard output (required)")
	f.DurationVar(&o.from, "from", 0, "start of the window since the start of the trace, as in 1.5ms")
	f.DurationVar(&o.to, "to", 0, "end of the window")
	f.StringVar(&o.iteration, "iteration", "", "the time of this iteration and of the GPU work launched in it")
	f.StringVar(&o.run, "run", "", "the trace of this run")
	f.Int64Var(&o.rank, "rank", 0, "the trace of this rank")
	f.StringVar(&o.trace, "trace", "", "the trace with this trace_id")
	f.Int64Var(&o.device, "device", 0, "GPU work of this device only")
	f.BoolVar(&o.keepOverlaps, "keep-overlaps", false, "leave GPU work that overlaps on one stream on it; viewers hide some of it")
	o.engine.flags(f)
	return c
}

func (o *sliceOptions) options() (slice.Options, error) {
	out := slice.Options{Iteration: o.iteration, KeepOverlaps: o.keepOverlaps}
	if o.output == "" {
		return out, errUsage("slice: say where to with -o OUT")
	}
	if o.given("from") {
		out.From = &o.from
	}
	if o.given("to") {
		out.To = &o.to
	}
	if o.given("device") {
		out.Device = &o.device
	}
	if o.given("iteration") && (o.given("from") || o.given("to")) {
		return out, errUsage("slice: give either --iteration or --from and --to")
	}
	if o.given("iteration") && o.iteration == "" {
		return out, errUsage("slice: --iteration must not be empty")
	}
	return out, nil
}

func runSlice(ctx context.Context, stdout, stderr io.Writer, path string, o *sliceOptions) error {
	opts, err := o.options()
	if err != nil {
		return err
	}
	pack, err := packerOf(o.output)
	if err != nil {
		return errUsage("slice: %v", err)
	}
	if same(path, o.output) {
		return errUsage("slice: %s is the input; give the output another name", o.output)
	}
	selected := map[string]any{}
	for flag, value := range map[string]any{"run": o.run, "rank": o.rank, "trace": o.trace} {
		if o.given(flag) {
			selected[flag] = value
		}
	}
	var rep *slice.Report
	err = withDataset(ctx, path, o.engine, selected, stderr, func(db *query.DB) error {
		return writeTo(o.output, stdout, func(w io.Writer) error {
			z, err := pack(w)
			if err != nil {
				return err
			}
			if rep, err = slice.Write(ctx, db, z, opts); err != nil {
				return errors.Join(err, z.Close())
			}
			return z.Close()
		})
	})
	var selection *slice.SelectionError
	if errors.As(err, &selection) {
		return errInput("slice: %s: %s", withoutParams(path), selection.Text)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(stderr, sliceLine(rep))
	return nil
}

func sliceLine(r *slice.Report) string {
	rank := ""
	if r.Rank != nil {
		rank = fmt.Sprintf(" (rank %v)", r.Rank)
	}
	line := fmt.Sprintf("trace %s%s, %v from %v: %d GPU events, %d launches, %d ranges, %d CPU events", r.TraceID, rank, r.Length, r.Offset,
		r.Rows["gpu_events"], r.Rows["launches"], r.Rows["ranges"], r.Rows["cpu_events"])
	if r.Moved > 0 {
		line += fmt.Sprintf("; %d overlap on their stream and stand on threads beside it", r.Moved)
	}
	return line
}

// same tells whether two paths name one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// packer wraps a writer in a compression.
type packer func(io.Writer) (io.WriteCloser, error)

type plainText struct{ io.Writer }

func (plainText) Close() error { return nil }

// packerOf returns the compression that the suffix of a trace tells.
func packerOf(path string) (packer, error) {
	path = withoutParams(path)
	switch {
	case strings.HasSuffix(path, ".json.gz"):
		return func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.DefaultCompression) }, nil
	case strings.HasSuffix(path, ".json.zst"):
		return func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }, nil
	case strings.HasSuffix(path, ".json"), path == "-":
		return func(w io.Writer) (io.WriteCloser, error) { return plainText{w}, nil }, nil
	}
	return nil, fmt.Errorf("%s: the name ends with none of .json, .json.gz, .json.zst", path)
}
