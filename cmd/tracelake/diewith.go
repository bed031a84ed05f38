package main

import "github.com/spf13/pflag"

// addDieWith adds the flag of what engines run as a child of their tasks.
func addDieWith(f *pflag.FlagSet, parent *int) {
	f.IntVar(parent, "die-with", 0, "stop when the process with this ID, which must be the parent, ends (Linux)")
}
