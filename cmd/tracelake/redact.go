package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"tracelake/internal/regular"
	"tracelake/nsight"
	"tracelake/nsight/reportcopy"
	"tracelake/redact"
)

type redactOptions struct {
	output, names, key, keep string
	dryRun, pids             bool
}

func newRedactCommand() *cobra.Command {
	o := &redactOptions{}
	c := &cobra.Command{
		Use:   "redact FILE -o OUT",
		Short: "Copy a trace without what is private in it",
		Long: `Copy a Kineto trace (.json, .gz, .zst) or an export of Nsight Systems (SQLite,
Parquet or Arrow directory, .arrows, JSON lines) in the form that it has, so that
it can be shared. Names that are not known to be public, paths, hosts,
users, environments, command lines, addresses and UUIDs are replaced, equal
texts by equal placeholders; times, shapes, IDs and links stay. What is not
known to be safe goes: header keys, arguments and tables are taken by lists.

Look through the copy before you share it: times, sizes and the order of work
stay, and tell what ran to whoever knows the model.`,
		Example: `  tracelake redact rank0.pt.trace.json.gz --dry-run
  tracelake redact rank0.pt.trace.json.gz --key "$KEY" -o public.json.gz
  tracelake redact report.sqlite --keep '^attention' -o public.sqlite
  tracelake redact report_pqtdir -o public_pqtdir`,
		Args: arguments(1, 1, "give one trace"),
		RunE: func(c *cobra.Command, args []string) error {
			return runRedact(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), args[0], o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "file, or directory, to write (required but for --dry-run)")
	f.StringVar(&o.names, "names", string(redact.PrivateNames), "names to replace: all, private (those not known to be public) or none")
	f.StringVar(&o.key, "key", "", "text that makes placeholders equal over several files; keep it to yourself (default: drawn for each run)")
	f.StringVar(&o.keep, "keep", "", "regular expression of names that stay")
	f.BoolVar(&o.pids, "pids", false, "replace process and thread IDs, too")
	f.BoolVar(&o.dryRun, "dry-run", false, "list what would be replaced, with examples, and write nothing")
	return c
}

func (o *redactOptions) policy() (*redact.Policy, error) {
	opts := redact.Options{Names: redact.Names(o.names), Key: o.key, PIDs: o.pids}
	if o.keep != "" {
		re, err := regexp.Compile(o.keep)
		if err != nil {
			return nil, errUsage("redact: --keep: %v", err)
		}
		opts.Keep = re
	}
	if opts.Names == "" {
		return nil, errUsage("redact: --names must not be empty")
	}
	p, err := redact.New(opts)
	if err != nil {
		return nil, errUsage("redact: --%v", err)
	}
	return p, nil
}

func runRedact(ctx context.Context, stdout, stderr io.Writer, path string, o *redactOptions) error {
	if (o.output == "") != o.dryRun {
		return errUsage("redact: give either -o OUT or --dry-run")
	}
	p, err := o.policy()
	if err != nil {
		return err
	}
	if !o.dryRun && same(path, o.output) {
		return errUsage("redact: %s is the input; give the copy another name", o.output)
	}
	kind := nsight.Sniff(path)
	if err := unreadable(path, kind); err != nil {
		return err
	}
	if kind == nsight.None {
		err = redactKineto(ctx, p, path, o, stdout)
	} else {
		err = redactReport(ctx, p, path, o)
	}
	if err != nil {
		if code := codeOf(err); code != exitFailed || ctx.Err() != nil {
			return err
		}
		var unwritten *outputError
		var copied *reportcopy.WriteError
		if errors.As(err, &unwritten) || errors.As(err, &copied) {
			return fmt.Errorf("redact: %w", err)
		}
		return errInput("redact: %s: %v", path, err)
	}
	if o.dryRun {
		return printCounts(stdout, p.Counts(), true)
	}
	return printCounts(stderr, p.Counts(), false)
}

// redactKineto writes the copy of a Kineto trace, or with --dry-run nothing.
func redactKineto(ctx context.Context, p *redact.Policy, path string, o *redactOptions, stdout io.Writer) error {
	in, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	copyTo := func(w io.Writer) error {
		text, err := redact.Open(stoppable{ctx, in})
		if err != nil {
			return err
		}
		return errors.Join(redact.Kineto(p, text, w), text.Close())
	}
	if o.dryRun {
		return copyTo(io.Discard)
	}
	pack, err := packerOf(o.output)
	if err != nil {
		return errUsage("redact: %v", err)
	}
	if o.output == "-" {
		return errUsage("redact: -o - would show a part of a trace that turns out to be broken; name a file")
	}
	return writeTo(o.output, stdout, func(w io.Writer) error {
		z, err := pack(w)
		if err != nil {
			return err
		}
		return errors.Join(copyTo(z), z.Close())
	})
}

// stoppable ends with the context.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(b)
}

// printCounts lists what was replaced. Examples are what nobody else may see:
// they are printed only when asked for.
func printCounts(w io.Writer, counts []redact.Count, examples bool) error {
	if len(counts) == 0 {
		_, err := fmt.Fprintln(w, "nothing to replace")
		return err
	}
	for _, c := range counts {
		line := fmt.Sprintf("%-12s %9d", c.Kind, c.Places)
		if examples {
			line += fmt.Sprintf("  %q", c.Example)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
