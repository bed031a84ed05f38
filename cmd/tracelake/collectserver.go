package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tracelake/collect/server"
	"tracelake/collected"
	"tracelake/convert"
)

// serverOptions are the flags of `collect --server`.
type serverOptions struct {
	url, traceDir, model, apiKeyEnv, run string
	duration, bound                      secondsValue
	requestFile, exec, record, lake      string
	concurrency                          int
	maxBytes                             sizeValue
	controlTimeout, flush                secondsValue
	f                                    *pflag.FlagSet
}

// serverFlagNames are the flags that mean something with --server only.
var serverFlagNames = []string{
	"trace-dir", "duration", "request-file", "exec", "request-concurrency", "trace-max-seconds", "trace-max-bytes",
	"control-timeout", "flush-timeout", "api-key-env", "record", "server-model",
}

// serverOnly reports whether a flag means nothing without --server.
func serverOnly(flag string) bool { return flag == "server" || slices.Contains(serverFlagNames, flag) }

// addServerFlags adds the flags of `collect --server` to those of collect.
func addServerFlags(f *pflag.FlagSet) *serverOptions {
	o := &serverOptions{f: f, controlTimeout: secondsValue(10 * time.Minute), flush: secondsValue(time.Minute)}
	f.StringVar(&o.url, "server", "", "open a profiler window on a running vLLM server at this URL")
	f.StringVar(&o.traceDir, "trace-dir", "", "with --server: directory where the server writes its traces (torch_profiler_dir)")
	f.Var(&o.duration, "duration", "with --server: profile for this long")
	f.StringVar(&o.requestFile, "request-file", "", "with --server: profile while the requests of this file are sent, one JSON body per line")
	f.IntVar(&o.concurrency, "request-concurrency", 8, "with --request-file: requests at once")
	f.StringVar(&o.exec, "exec", "", "with --server: profile while this shell command runs")
	f.Var(&o.bound, "trace-max-seconds", "with --server: stop the profiler after so many seconds, whatever still runs")
	f.Var(&o.maxBytes, "trace-max-bytes", "with --server: leave traces larger than this (as stored) out of --convert")
	f.Var(&o.controlTimeout, "control-timeout", "with --server: wait so long for the answers to start and stop")
	f.Var(&o.flush, "flush-timeout", "with --server: wait so long for traces to be complete")
	f.StringVar(&o.apiKeyEnv, "api-key-env", "", "with --server: name of the environment variable that holds the API key")
	f.StringVar(&o.record, "record", "", "with --server: also write the record of the window to this file")
	f.StringVar(&o.model, "server-model", "", "with --server: model in the dataset (default: as the server says)")
	f.StringVar(&o.lake, "convert", "", "import what was collected into this dataset")
	f.StringVar(&o.run, "run", "", "with --convert: run to file the traces under")
	return o
}

// asked reports whether --server was given, and refuses its flags without it
// and those of jobs beside it.
func (o *serverOptions) asked() (bool, error) {
	if o.f.Changed("server") {
		var jobs error
		o.f.Visit(func(f *pflag.Flag) {
			if jobs == nil && !serverOnly(f.Name) && !slices.Contains([]string{"convert", "run", "json", "quiet", "die-with"}, f.Name) {
				jobs = errUsage("collect: --%s does not go with --server", f.Name)
			}
		})
		return true, jobs
	}
	for _, name := range serverFlagNames {
		if o.f.Changed(name) {
			return false, errUsage("collect: --%s goes with --server URL", name)
		}
	}
	return false, nil
}

func (o *serverOptions) check() error {
	n := 0
	for _, name := range []string{"duration", "request-file", "exec"} {
		if o.f.Changed(name) {
			n++
		}
	}
	switch {
	case n != 1:
		return errUsage("collect --server: say what to profile with one of --duration, --request-file and --exec")
	case o.f.Changed("duration") && o.duration <= 0, o.f.Changed("trace-max-seconds") && o.bound <= 0, o.controlTimeout <= 0, o.flush <= 0:
		return errUsage("collect --server: times must be greater than 0")
	case o.f.Changed("trace-max-bytes") && o.maxBytes <= 0, o.concurrency <= 0:
		return errUsage("collect --server: --trace-max-bytes and --request-concurrency must be greater than 0")
	case o.lake != "" && o.traceDir == "":
		return errUsage("collect --server: --convert needs --trace-dir, where the server writes its traces")
	case o.run != "" && o.lake == "":
		return errUsage("collect --server: --run goes with --convert LAKE")
	}
	return nil
}

// serverWindow is what `collect --server` prints: the record of the window and
// what became of its traces.
type serverWindow struct {
	server.Record
	Model    string        `json:"model,omitempty"`
	Answered *int          `json:"requests_answered,omitempty"`
	Imports  []traceImport `json:"imports,omitempty"`
}

// traceImport is what became of a trace of the window.
type traceImport struct {
	Path    string          `json:"path"`
	Bytes   int64           `json:"bytes"`
	Skipped string          `json:"skipped,omitempty"` // max_bytes, interrupted
	Report  *convert.Report `json:"report,omitempty"`
}

// runCollectServer profiles a running server.
func runCollectServer(c *cobra.Command, o *serverOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	key := ""
	if o.apiKeyEnv != "" {
		if key = os.Getenv(o.apiKeyEnv); key == "" {
			return errUsage("collect --server: the environment has no %s", o.apiKeyEnv)
		}
	}
	control, err := server.NewControl(o.url, key, time.Duration(o.controlTimeout))
	if err != nil {
		return errUsage("collect --server: %v", err)
	}
	var lake *convert.Importer
	if o.lake != "" {
		// At once, so that a mistake in the path is found before the work.
		if lake, err = convert.Open(convert.Options{Output: o.lake, Run: o.run, Writer: writer()}); err != nil {
			return err
		}
	}
	// From here on a second interruption must not end the process either: what
	// was started has to be stopped.
	hold := make(chan os.Signal, 8)
	signal.Notify(hold, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(hold)
	ctx := c.Context()
	out := serverWindow{Model: o.model}
	if out.Model == "" {
		out.Model = control.Model(ctx)
	}
	body, err := o.body(control, &out, c.ErrOrStderr())
	if err != nil {
		return err
	}
	var bodyErr error
	out.Record, bodyErr = server.Run(ctx, server.Config{
		Control: control, TraceDir: o.traceDir, MaxTime: time.Duration(o.bound), Flush: time.Duration(o.flush),
		Warn: func(s string) { fmt.Fprintln(c.ErrOrStderr(), "warning  ", s) },
	}, body)
	bad, err := o.importTraces(ctx, lake, &out)
	if werr := o.write(c.OutOrStdout(), &out); err == nil {
		err = werr
	}
	printWindow(c.ErrOrStderr(), &out)
	switch {
	case err != nil:
		return err
	case bodyErr != nil:
		return bodyErr
	case !out.Started || !out.Stopped():
		return &exitError{code: exitFailed}
	case o.traceDir != "" && len(out.TraceFiles) == 0, bad:
		return &exitError{code: exitPartial}
	}
	return nil
}

// body is what happens inside the window.
func (o *serverOptions) body(control *server.Control, out *serverWindow, log io.Writer) (func(context.Context, bool) error, error) {
	switch {
	case o.exec != "":
		return func(ctx context.Context, _ bool) error { return server.Exec(ctx, o.exec, log) }, nil
	case o.requestFile != "":
		requests, err := server.ReadRequests(o.requestFile, out.Model)
		if err != nil {
			return nil, errInput("%v", err)
		}
		return func(ctx context.Context, _ bool) error {
			n, err := control.Send(ctx, requests, o.concurrency)
			out.Answered = &n
			return err
		}, nil
	}
	return func(ctx context.Context, profiled bool) error {
		if !profiled {
			return nil // nothing to wait for
		}
		select {
		case <-time.After(time.Duration(o.duration)):
		case <-ctx.Done():
		}
		return ctx.Err()
	}, nil
}

// importTraces imports the traces of the window. Bad is set where one of them
// is not there in full.
func (o *serverOptions) importTraces(ctx context.Context, lake *convert.Importer, out *serverWindow) (bad bool, err error) {
	if lake == nil {
		return false, nil
	}
	job := &collected.Job{Dir: o.traceDir, Keys: collected.Keys{
		Model: out.Model, Framework: "vllm", Mode: "eval", Tracer: "vllm_server", TracerVersion: "1",
	}}
	var found convert.Found
	at := map[string]int{}
	for _, name := range out.TraceFiles {
		x := traceImport{Path: filepath.Join(o.traceDir, name)}
		if st, err := os.Stat(x.Path); err == nil {
			x.Bytes = st.Size()
		}
		switch {
		case ctx.Err() != nil:
			x.Skipped, bad = "interrupted", true
		case o.maxBytes > 0 && x.Bytes > int64(o.maxBytes):
			x.Skipped = "max_bytes"
		default:
			at[x.Path] = len(out.Imports)
			found.Inputs = append(found.Inputs, convert.Input{Path: x.Path, Bytes: x.Bytes, Named: true, Job: job})
		}
		out.Imports = append(out.Imports, x)
	}
	if len(found.Inputs) == 0 {
		return bad, nil
	}
	_, err = lake.Import(ctx, found, func(r convert.Report) {
		bad = bad || r.Bad()
		out.Imports[at[r.Path]].Report = &r
	})
	if errors.Is(err, context.Canceled) {
		return true, nil // the window is recorded all the same
	}
	return bad, err
}

func (o *serverOptions) write(w io.Writer, out *serverWindow) error {
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err := w.Write(text); err != nil {
		return err
	}
	if o.record == "" {
		return nil
	}
	return writeTo(o.record, io.Discard, func(f io.Writer) error {
		_, err := f.Write(text)
		return err
	})
}

func printWindow(w io.Writer, out *serverWindow) {
	line := "window    " + out.ControlURL + ": start " + out.StartOutcome
	if out.StopReason != nil {
		line += fmt.Sprintf(", stopped by %s after %.1f s", *out.StopReason, float64(*out.StoppedAtNS-out.StartReturnedNS)/1e9)
	}
	if out.Started {
		line += fmt.Sprintf(", %d worker traces", len(out.TraceFiles))
	}
	fmt.Fprintln(w, line)
	if out.Note != nil {
		fmt.Fprintln(w, "note     ", *out.Note)
	}
	for _, x := range out.Imports {
		if x.Report != nil {
			fmt.Fprintln(w, reportLine(x.Report))
		} else if x.Skipped != "" {
			fmt.Fprintf(w, "skipped   %s: %s\n", x.Path, x.Skipped)
		}
	}
}
