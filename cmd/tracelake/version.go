package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"tracelake/schema"
)

// version is set by the linker.
var version = "dev"

// writer names the program in what it writes.
func writer() string { return "tracelake " + version }

func newVersionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := map[string]any{
				"version": version, "schema_version": schema.Version, "go": runtime.Version(),
				"os": runtime.GOOS, "arch": runtime.GOARCH,
			}
			if b, ok := debug.ReadBuildInfo(); ok {
				for _, d := range b.Deps {
					if d.Path == "github.com/duckdb/duckdb-go/v2" {
						v["duckdb_go"] = d.Version
					}
				}
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(v)
			}
			fmt.Fprintf(c.OutOrStdout(), "tracelake %s (schema %d, %s, %s/%s)\n", version, schema.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return c
}
