package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tracelake/analyze/query"
	"tracelake/schema/lake"
)

type sqlOptions struct {
	file, format string
	maxMemory    sizeValue
	threads      int

	lake  string
	query string
}

func (o *sqlOptions) flags(f *pflag.FlagSet) {
	f.StringVarP(&o.file, "file", "f", "", "read the query from a file; - is standard input")
	f.StringVar(&o.format, "format", string(query.Table), "table, csv or json (one object per line)")
	f.Var(&o.maxMemory, "max-memory", "memory that DuckDB may take before it spills to disk (default: 80 % of the machine)")
	f.IntVar(&o.threads, "threads", 0, "threads of DuckDB (default: one per processor)")
}

func newSQLCommand() *cobra.Command {
	o := &sqlOptions{}
	c := &cobra.Command{
		Use:   "sql LAKE [QUERY | -f FILE]",
		Short: "Ask a dataset a question in SQL",
		Long: `Run SQL with the DuckDB inside tracelake. Every table of the dataset is a view;
docs/data-dictionary.md lists their columns and units. Of several statements,
separated by semicolons, the rows of the last one are printed.

The query can read the committed files of the dataset and nothing else: no other
file, no network, no extensions. Redirect the output to keep it.`,
		Example: `  tracelake sql lake "SELECT name, sum(dur_ns) FROM gpu_events GROUP BY name"
  tracelake sql lake -f analyze/query/sql/kernels.sql --format csv > kernels.csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errUsage("sql: give a dataset, and a query or -f FILE")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.lake = args[0]
			if len(args) == 2 {
				o.query = args[1]
			}
			if (len(args) == 2) == (o.file != "") {
				return errUsage("sql: give either a query or -f FILE")
			}
			return runSQL(c.Context(), c.InOrStdin(), c.OutOrStdout(), o)
		},
	}
	o.flags(c.Flags())
	return c
}

// runSQL prints the answer to one query.
func runSQL(ctx context.Context, stdin io.Reader, stdout io.Writer, o *sqlOptions) (err error) {
	format, err := query.ParseFormat(o.format)
	if err != nil {
		return errUsage("sql: %v", err)
	}
	if o.threads < 0 {
		return errUsage("sql: --threads must not be negative")
	}
	text, err := o.text(stdin)
	if err != nil {
		return err
	}
	db, err := openLake(ctx, o.lake, o.maxMemory, o.threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(ctx, text)
	if errors.Is(err, query.ErrForbidden) || errors.Is(err, query.ErrEmpty) {
		return errUsage("sql: %v", err)
	}
	if err != nil {
		return err
	}
	return query.Print(stdout, format, rows)
}

// openLake opens a dataset for queries.
func openLake(ctx context.Context, dir string, maxMemory sizeValue, threads int) (*query.DB, error) {
	options := query.Options{Threads: threads}
	if maxMemory > 0 {
		options.Memory = fmt.Sprintf("%dB", int64(maxMemory))
	}
	db, err := query.Open(ctx, dir, options)
	if errors.Is(err, lake.ErrNotLake) || errors.Is(err, lake.ErrNewer) || errors.Is(err, fs.ErrNotExist) {
		return nil, errInput("%v", err)
	}
	return db, err
}

func (o *sqlOptions) text(stdin io.Reader) (string, error) {
	if o.file == "" {
		return o.query, nil
	}
	var data []byte
	var err error
	if o.file == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(o.file)
	}
	if err != nil {
		return "", errInput("sql: %v", err)
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil
}
