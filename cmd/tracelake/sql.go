package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tracelake/analyze/query"
	"tracelake/internal/regular"
)

type sqlOptions struct {
	file, format string
	engine       engineFlags

	lake  string
	query string
	given bool // query is an argument
}

func (o *sqlOptions) flags(f *pflag.FlagSet) {
	f.StringVarP(&o.file, "file", "f", "", "read the query from a file; - is standard input")
	f.StringVar(&o.format, "format", string(query.Table), "table, csv, json (one object per line) or parquet")
	o.engine.flags(f)
}

func newSQLCommand() *cobra.Command {
	o := &sqlOptions{}
	c := &cobra.Command{
		Use:   "sql LAKE [QUERY | -f FILE]",
		Short: "Ask a dataset a question in SQL",
		Long: `Run SQL with the DuckDB inside tracelake. Every table of the dataset is a view;
docs/data-dictionary.md lists their columns and units, docs/sql.md the views and
macros beside them. Of several statements, separated by semicolons, the rows of
the last one are printed.

Without a query, statements are read from standard input. In a terminal that is
a prompt: statements end with a semicolon, .help lists what else it knows,
Ctrl-C stops a running query, and all that was set or created lasts until .quit.

The query can read the committed files of the dataset and nothing else: no other
file, no network, no extensions. Redirect the output to keep it.`,
		Example: `  tracelake sql lake "SELECT name, sum(dur_ns) FROM gpu_events GROUP BY name"
  tracelake sql lake -f analyze/query/sql/kernels.sql --format csv > kernels.csv
  tracelake sql lake --max-memory 2GiB --temp-dir /scratch`,
		Args: arguments(1, 2, "give a dataset, and a query or -f FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			o.lake = args[0]
			if o.given = len(args) == 2; o.given {
				o.query = args[1]
			}
			if o.given && o.file != "" {
				return errUsage("sql: give either a query or -f FILE")
			}
			return runSQL(c.Context(), c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), o)
		},
	}
	o.flags(c.Flags())
	return c
}

// runSQL prints the answer to one query.
func runSQL(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, o *sqlOptions) (err error) {
	format, err := query.ParseFormat(o.format)
	if err != nil {
		return errUsage("sql: %v", err)
	}
	if o.file == "" && !o.given && isTerminal(stdin) {
		return runPrompt(ctx, stdin.(*os.File), stdout, stderr, o, format)
	}
	text, err := o.text(stdin)
	if err != nil {
		return err
	}
	db, err := openLake(ctx, o.lake, o.engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(ctx, text)
	if errors.Is(err, query.ErrEmpty) && o.file == "" && !o.given {
		return errUsage("sql: no query on standard input; give one as an argument, with -f FILE, or open a prompt in a terminal")
	}
	if errors.Is(err, query.ErrForbidden) || errors.Is(err, query.ErrEmpty) {
		return errUsage("sql: %v", err)
	}
	if err != nil {
		return err
	}
	return query.Print(stdout, format, rows)
}

func (o *sqlOptions) text(stdin io.Reader) (string, error) {
	if o.given {
		return o.query, nil
	}
	var data []byte
	var err error
	if o.file == "" || o.file == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = regular.ReadFile(o.file)
	}
	if err != nil {
		return "", errInput("sql: %v", err)
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil
}
