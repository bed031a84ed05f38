package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tracelake/convert"
	"tracelake/schema/lake"
)

func newViewsCommand() *cobra.Command {
	root := ""
	c := &cobra.Command{
		Use:   "views LAKE",
		Short: "Print SQL that makes the tables views in a DuckDB of your own",
		Long: `Print the SQL of _tracelake/views.sql for where the dataset is now: a view per
table, the shared views and macros that the analyses use.`,
		Example: `  tracelake views lake | duckdb -init /dev/stdin
  tracelake views lake --root s3://bucket/lake > views.sql`,
		Args: arguments(1, 1, "give a dataset"),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := lake.Open(args[0])
			if err != nil {
				return errInput("%v", err)
			}
			if root == "" {
				if root, err = convert.ViewsRoot(l); err != nil {
					return err
				}
			}
			sql, err := convert.ViewsSQL(l, root)
			if err != nil {
				return errInput("%v", err)
			}
			_, err = fmt.Fprint(c.OutOrStdout(), sql)
			return err
		},
	}
	c.Flags().StringVar(&root, "root", "", "where DuckDB finds the dataset, as a path or URL (default: its absolute path)")
	return c
}
