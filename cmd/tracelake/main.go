// Command tracelake turns profiler traces into tables.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"tracelake/collect/isolate"
	_ "tracelake/internal/store/cloud" // object stores
)

func main() {
	isolate.MaybeGuard()
	tuneCollector()
	os.Exit(run(os.Args[1:]))
}

// run executes one command line and returns its exit code.
func run(args []string) int {
	ctx, stop := interruptible()
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	out, stderr := &checkedWriter{w: shownStdout()}, shownStderr()
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if sig := interrupted(ctx); sig != nil {
		fmt.Fprintf(stderr, "tracelake: stopped by %v; what was committed stays, and the same command resumes\n", sig)
		return exitCodeOf(sig)
	}
	if err != nil {
		var quiet *exitError
		if !errors.As(err, &quiet) || quiet.text != "" {
			fmt.Fprintln(stderr, "tracelake: "+err.Error())
		}
		return codeOf(err)
	}
	if out.err != nil {
		fmt.Fprintln(stderr, "tracelake: "+out.err.Error())
		return exitFailed
	}
	return exitOK
}

// checkedWriter remembers the first error, so that nobody who prints a line has
// to look and an answer that was cut off is never a success.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tracelake",
		Short: "Turn GPU profiler traces into tables",
		Long: `tracelake turns profiler traces into tables that DuckDB, pandas, polars and
Spark read as they are, and answers questions about them.

Exit codes: 0 all done; 1 failed; 2 usage; 3 some inputs were partial, rejected
or failed, the rest is committed; 4 slower than diff --fail-on allows; 5 input
unreadable or invalid; 130 and 143 interrupted.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.NoArgs,
		PersistentPreRunE: onThisMachine,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return errUsage("%v", err) })
	root.AddCommand(newConvertCommand(), newInspectCommand(), newVersionCommand())
	root.AddCommand(moreCommands()...)
	root.CompletionOptions.HiddenDefaultCmd = false
	blameUsage(root)
	return root
}

// blameUsage makes wrong arguments of every command errors of usage.
func blameUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			var known *exitError
			if err != nil && !errors.As(err, &known) {
				return errUsage("%v", err)
			}
			return err
		}
	}
	for _, sub := range c.Commands() {
		blameUsage(sub)
	}
}

// arguments asks for least to most arguments, or any number from least on where
// most is negative, and says what to give.
func arguments(least, most int, give string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if n := len(args); n < least || most >= 0 && n > most {
			return errUsage("%s: %s", c.Name(), give)
		}
		return nil
	}
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ sig os.Signal }

func (e signalError) Error() string { return e.sig.String() }

// interruptible returns a context that the first SIGINT or SIGTERM ends; the
// second one kills the process as usual.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range ch {
			if do := diverted.Load(); do != nil && s == os.Interrupt {
				(*do)()
				continue
			}
			signal.Stop(ch)
			cancel(signalError{s})
			return
		}
	}()
	return ctx, func() { signal.Stop(ch); cancel(nil) }
}

// diverted is what SIGINT does instead of ending the program.
var diverted atomic.Pointer[func()]

// divertInterrupts makes SIGINT call do, until the returned function is called.
func divertInterrupts(do func()) (end func()) {
	before := diverted.Swap(&do)
	return func() { diverted.Store(before) }
}

func interrupted(ctx context.Context) os.Signal {
	var s signalError
	if errors.As(context.Cause(ctx), &s) {
		return s.sig
	}
	return nil
}
