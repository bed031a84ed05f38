// Command gen writes a Kineto trace that looks like one of a large model on a
// GPU, of any size and always the same for the same options:
//
//	go run ./bench/gen -mb 300 -seed 1 -o FILE
//
// The file is compressed when its name ends in .gz. A line of JSON with the
// counts goes to standard output.
package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	var c config
	var output string
	noStacks := false
	flag.Float64Var(&c.MB, "mb", 0, "size of the text in MB (10^6 bytes); 0 takes -steps")
	flag.IntVar(&c.Steps, "steps", 0, "iterations, where -mb is 0")
	flag.Uint64Var(&c.Seed, "seed", 1, "seed of everything random")
	flag.StringVar(&c.Layout, "layout", "2026", "2025: several keys on a line; 2026: one key on a line")
	flag.StringVar(&c.Mix, "mix", serving, "what runs: "+strings.Join(mixes, ", "))
	flag.BoolVar(&c.AMD, "amd", false, "calls and GPU events as on AMD machines")
	flag.BoolVar(&c.Minify, "minify", false, "without white space")
	flag.BoolVar(&noStacks, "no-stacks", false, "without python_function events")
	flag.IntVar(&c.Rank, "rank", 0, "rank of the trace")
	flag.IntVar(&c.World, "world", 2, "ranks of the job")
	flag.IntVar(&c.StepOps, "step-ops", 60, "operators per iteration, about")
	flag.IntVar(&c.LostPerMille, "lost", 1, "launch records that are lost, per mille")
	flag.StringVar(&output, "o", "", "output file (required)")
	flag.Parse()
	c.Stacks = !noStacks
	if output == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(output, c); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func write(path string, c config) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var w io.Writer = f
	if strings.HasSuffix(path, ".gz") {
		z := gzip.NewWriter(f)
		defer func() { err = errors.Join(z.Close(), err) }()
		w = z
	}
	counts, err := generate(w, c)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(counts)
}
