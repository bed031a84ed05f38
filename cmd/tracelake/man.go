package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand is for packagers: pages from the flags that there are.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "Write manual pages", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			// Without a date of their own, pages differ from day to day.
			epoch := time.Unix(0, 0).UTC()
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Title: "TRACELAKE", Section: "1", Source: writer(), Date: &epoch}, args[0])
		},
	}
}
