// Command nsysgen writes an Nsight Systems SQLite export of any size: a few
// processes, each with its own GPU, correlation IDs that all of them use, and
// iterations marked with NVTX. The same options give the same rows.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
)

func main() {
	var o options
	flag.Int64Var(&o.kernels, "kernels", 2_000_000, "kernels over all processes")
	flag.Int64Var(&o.processes, "procs", 4, "processes")
	flag.Int64Var(&o.perIteration, "iteration", 1000, "kernels per iteration")
	flag.Int64Var(&o.names, "names", 400, "distinct kernels")
	flag.Uint64Var(&o.seed, "seed", 1, "seed")
	out := flag.String("o", "report.sqlite", "file to write")
	flag.Parse()
	if o.kernels < 1 || o.processes < 1 || o.perIteration < 1 || o.names < 1 {
		fmt.Fprintln(os.Stderr, "nsysgen: numbers must be positive")
		os.Exit(2)
	}
	if err := write(*out, o); err != nil {
		log.Fatal(err)
	}
}
