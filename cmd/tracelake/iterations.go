package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tracelake/collect/iterations"
)

func newIterationsCommand() *cobra.Command {
	var dir string
	var force bool
	c := &cobra.Command{
		Use:   "iterations [--install DIR]",
		Short: "Print the Python code that marks iterations in profiles",
		Long: `Print a Python module that marks iterations with ranges named
stormlog.iteration/PRODUCER/ITERATION, by which convert and activities attribute
GPU work to them. With --install the module is written to DIR/` + iterations.FileName + `
instead, and its path is printed. It needs nothing but PyTorch.`,
		Example: `  tracelake iterations --install .
  python -c 'from tracelake_iterations import iteration'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				if force {
					return errUsage("iterations: --force goes with --install")
				}
				_, err := c.OutOrStdout().Write(iterations.Source)
				return err
			}
			path, err := iterations.Install(dir, force)
			if errors.Is(err, iterations.ErrExists) {
				return fmt.Errorf("%w; --force replaces it", err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), path)
			return err
		},
	}
	c.Flags().StringVar(&dir, "install", "", "write the module into this directory")
	c.Flags().BoolVar(&force, "force", false, "replace a file of another content")
	return c
}
