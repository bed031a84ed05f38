package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tracelake/schema/columnar"
	"tracelake/schema/lake"
)

// defaultTarget is the size of a file that every engine reads well: large
// enough to be worth opening, small enough to share out.
const defaultTarget = 256 << 20

func openForWriting(root string) (*lake.Lake, error) {
	if _, err := lake.Open(root); err != nil { // Create would make one
		return nil, errInput("%v", err)
	}
	l, err := lake.Create(root, writer())
	if err != nil {
		return nil, errInput("%v", err)
	}
	return l, nil
}

func newCompactCommand() *cobra.Command {
	target, compression, asJSON := sizeValue(defaultTarget), "zstd", false
	var runs []string
	c := &cobra.Command{
		Use:   "compact LAKE",
		Short: "Merge the small files of a dataset",
		Long: `Merge the files of each table, run and rank into files of about the target size.
Rows stay as they are; within a file they are ordered by trace, then as before.
Files that are half the target or larger are left alone.

It may run beside imports and queries: a directory changes in one step, so that
its readers see the files before or after, never both; a query that has listed
files but not opened them can fail and may be repeated. When the command is
killed nothing is lost. It needs a local Linux or macOS file system, or an object
store that knows conditional writes, where tools that list directories must wait
until it has ended.`,
		Args: arguments(1, 1, "give a dataset"),
		RunE: func(c *cobra.Command, args []string) error {
			comp, err := columnar.ParseCompression(compression)
			if err != nil {
				return errUsage("--compression: %v", err)
			}
			if target <= 0 {
				return errUsage("--target-file-size must be positive")
			}
			l, err := openForWriting(args[0])
			if err != nil {
				return err
			}
			o := lake.CompactOptions{TargetBytes: int64(target), Runs: runs, Compression: comp}
			if !asJSON {
				o.Progress = func(_, dir string, before, after int) {
					fmt.Fprintf(c.ErrOrStderr(), "merged    %s: %d files into %d\n", dir, before, after)
				}
			}
			sum, err := l.Compact(c.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(sum)
			}
			fmt.Fprintln(c.ErrOrStderr(), compactedLine(&sum))
			return nil
		},
	}
	c.Flags().Var(&target, "target-file-size", "size of merged files")
	c.Flags().StringVar(&compression, "compression", "zstd", "zstd, snappy or none, of merged files")
	c.Flags().StringSliceVar(&runs, "run", nil, "runs to compact (default: all)")
	c.Flags().BoolVar(&asJSON, "json", false, "print what was done as a JSON object")
	return c
}

func compactedLine(s *lake.Compacted) string {
	line := fmt.Sprintf("%d files of %s merged into %d of %s", s.Merged, formatSize(s.Before), s.Into, formatSize(s.After))
	if s.Left > 0 {
		line += fmt.Sprintf("; %d small files of other schema versions left alone", s.Left)
	}
	if s.Busy > 0 {
		line += fmt.Sprintf("; %d directories changed meanwhile, run it again", s.Busy)
	}
	return line
}

func newVacuumCommand() *cobra.Command {
	age, asJSON := 24*time.Hour, false
	c := &cobra.Command{
		Use:   "vacuum LAKE",
		Short: "Remove what killed writers left in a dataset",
		Long: `Remove unfinished files whose writer is dead, and files that belong to no trace.
What a writer of this machine left goes at once. What one of another machine
left, and files without a trace, go when they are older than --older-than, which
must be longer than any import or compact takes. Committed rows are never touched.`,
		Args: arguments(1, 1, "give a dataset"),
		RunE: func(c *cobra.Command, args []string) error {
			if age < 0 {
				return errUsage("--older-than must not be negative")
			}
			l, err := openForWriting(args[0])
			if err != nil {
				return err
			}
			s, err := l.Sweep(age)
			if err != nil {
				var p *os.PathError
				if errors.As(err, &p) {
					return fmt.Errorf("vacuum: %w", err)
				}
				return errInput("%v", err)
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(s)
			}
			fmt.Fprintf(c.ErrOrStderr(), "removed %d unfinished imports and %d files without a trace, %s\n", s.Transactions, s.Parts, formatSize(s.Bytes))
			return nil
		},
	}
	c.Flags().DurationVar(&age, "older-than", age, "age of what may be removed, as in 90m or 24h")
	c.Flags().BoolVar(&asJSON, "json", false, "print what was done as a JSON object")
	return c
}
