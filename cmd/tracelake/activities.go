package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tracelake/analyze/activity"
	"tracelake/convert"
	"tracelake/internal/scratch"
	"tracelake/internal/store"
	"tracelake/nsight"
)

type activitiesOptions struct {
	detail, run, session, attachment, compat, uuidsByPID, output, executionDir string
	deviceUUIDs, patterns                                                      []string
	summary                                                                    bool
}

func (o *activitiesOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.detail, "detail", "launch", "one record per launch, device and kind, or per kernel")
	f.StringArrayVar(&o.deviceUUIDs, "device-uuid", nil, "[TRACE:]INDEX=UUID of a device (repeatable)")
	f.StringVar(&o.uuidsByPID, "device-uuids-by-pid", "", "JSON file {PID: {INDEX: UUID}}")
	f.StringVar(&o.executionDir, "vllm-execution-dir", "", "execution log of vLLM workers, which tells the GPUs of processes; --device-uuid wins")
	f.StringVar(&o.run, "run-id", "run-1", "run_id of the records")
	f.StringVar(&o.session, "session-id", "session-1", "session_id of the records")
	f.StringVar(&o.attachment, "attachment-id", "", "ID that records and clock domain are named after (default: trace ID, or file name)")
	f.StringVar(&o.compat, "compat", "", "stormlog: exactly the records of stormlog "+activity.ReferenceVersion)
	f.StringArrayVar(&o.patterns, "range-pattern", nil, "[PRODUCER=]REGEXP of ranges that mark iterations (repeatable)")
	f.StringVarP(&o.output, "output", "o", "-", "file for the records; - for standard output")
	f.BoolVar(&o.summary, "summary", false, "print capabilities and summary of each trace instead of its records")
}

func newActivitiesCommand() *cobra.Command {
	o := &activitiesOptions{}
	c := &cobra.Command{
		Use:   "activities FILE...",
		Short: "Print GPU activity records as JSON lines",
		Long: `Link the GPU work of traces to launches and iterations and print one activity
record per line. A launch record holds the busy intervals of all its GPU events
in ns. With --compat stormlog the records are exactly those of the stormlog
package, and what it refuses is refused. Exits with 5 where a trace cannot be
imported, with 3 where one is partial, and with 2 where options contradict each
other.`,
		Args: arguments(1, -1, "name at least one file"),
		RunE: func(c *cobra.Command, args []string) error { return runActivities(c, o, args) },
	}
	o.flags(c.Flags())
	return c
}

func runActivities(c *cobra.Command, o *activitiesOptions, paths []string) (err error) {
	if o.compat != "" && o.compat != "stormlog" {
		return errUsage("--compat %s: want stormlog", o.compat)
	}
	if o.compat != "" && len(o.patterns) > 0 {
		return errUsage("--range-pattern has no counterpart in stormlog; leave out --compat")
	}
	if o.run == "" || o.session == "" {
		return errUsage("--run-id and --session-id must not be empty")
	}
	marks, err := parsePatterns(o.patterns)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if st, err := os.Stat(p); err != nil || st.IsDir() && nsight.Sniff(p) == nsight.None {
			return errInput("%s: no such file", p)
		}
	}
	uuids, err := activity.ParseDeviceUUIDs(o.deviceUUIDs)
	if err != nil {
		return err
	}
	if err := uuids.Bind(paths); err != nil {
		return err
	}
	opt := activity.Options{RunID: o.run, SessionID: o.session, AttachmentID: o.attachment, Detail: o.detail, Compat: o.compat != ""}
	if o.uuidsByPID != "" {
		if opt.DeviceUUIDsByPID, err = activity.ReadDeviceUUIDsByPID(o.uuidsByPID); err != nil {
			return err
		}
	}
	if opt.ExecutionLog, err = readExecutionLog(o.executionDir, o.uuidsByPID, c.ErrOrStderr()); err != nil {
		return err
	}
	partial := false
	// Nothing is printed before every trace is known to be good.
	results := make([]*activity.Result, 0, len(paths))
	summaries := make([]*activity.Summary, 0, len(paths))
	for _, p := range paths {
		opt.DeviceUUIDs = uuids.For(p)
		r, diags, err := convert.ImportActivities(c.Context(), p, marks, opt)
		if err != nil {
			if codeOf(err) == exitUsage {
				return err
			}
			return errInput("%s: %v", p, err)
		}
		if outcome, reason := diags.Outcome(); outcome != "ok" {
			fmt.Fprintf(c.ErrOrStderr(), "%-9s %s: %s\n", outcome, p, reason)
			partial = partial || outcome == "partial"
		}
		if b := r.Binding; b != nil && len(b.Unmatched)+len(b.Ambiguous) > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "notice    %s: execution log %s; processes %v are no worker, %v could be several\n", p, b.Status, b.Unmatched, slices.Sorted(maps.Keys(b.Ambiguous)))
		}
		results = append(results, r)
		summaries = append(summaries, &r.Summary)
	}
	if err := uuids.CheckShared(paths, summaries); err != nil {
		return err
	}
	err = writeTo(o.output, c.OutOrStdout(), func(w io.Writer) error {
		for _, r := range results {
			if o.summary {
				if err := json.NewEncoder(w).Encode(map[string]any{"capabilities": r.Capabilities, "summary": r.Summary}); err != nil {
					return err
				}
			} else if err := r.WriteJSONLines(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && partial {
		return &exitError{code: exitPartial}
	}
	return err
}

// outputError says that an output could not be written, whatever the input is
// like.
type outputError struct{ error }

func (e *outputError) Unwrap() error { return e.error }

// writeTo writes a file that appears only when it is complete, or to stdout.
func writeTo(path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		b := bufio.NewWriterSize(stdout, 1<<16)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	}
	if store.IsURL(path) {
		return writeObject(path, write)
	}
	file, err := scratch.NewOutput(path)
	if err != nil {
		return &outputError{err}
	}
	defer file.Abandon() //nolint:errcheck // the next output in that directory tries again
	f, err := os.Create(file.Path())
	if err != nil {
		return &outputError{err}
	}
	defer f.Close()
	out := &checkedWriter{w: f}
	b := bufio.NewWriterSize(out, 1<<16)
	err = write(b)
	if out.err == nil && err != nil {
		return err
	}
	if err = errors.Join(out.err, b.Flush(), f.Sync(), f.Close()); err == nil {
		err = file.Finish()
	}
	if err != nil {
		return &outputError{err}
	}
	return nil
}
