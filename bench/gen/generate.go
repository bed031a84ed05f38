package main

//go:generate go run . -steps 10 -step-ops 52 -seed 11 -lost 12 -rank 0 -o ../../testdata/demo/serving/rank0.pt.trace.json.gz
//go:generate go run . -steps 10 -step-ops 52 -seed 11 -lost 12 -rank 1 -o ../../testdata/demo/serving/rank1.pt.trace.json.gz

import (
	"io"
)

// config says what to write. The same config gives the same bytes.
type config struct {
	MB           float64
	Steps        int
	Seed         uint64
	Layout       string // 2025 or 2026
	Stacks       bool
	Mix          string // serving where it is empty
	AMD, Minify  bool
	Rank, World  int
	StepOps      int
	LostPerMille int
}

// counts tell what a trace holds.
type counts struct {
	Bytes  int64          `json:"bytes"`
	Events int            `json:"events"`
	Steps  int            `json:"steps"`
	ByKind map[string]int `json:"by_kind"` // by category, or phase where there is none
}

// generate writes a trace. Kineto writes what happened on the CPU before what
// happened on the GPU, so that the work is simulated twice with the same seed:
// once for either part, in constant memory.
func generate(w io.Writer, c config) (counts, error) {
	if err := c.check(); err != nil {
		return counts{}, err
	}
	out := &counter{w: w, minify: c.Minify}
	head := header(c)
	out.write(head)

	first := newSimulation(c)
	size := int64(len(head))
	limit := int64(c.MB * 1e6)
	for out.err == nil && (c.MB > 0 && size < limit || c.MB <= 0 && first.step < c.Steps) {
		first.iteration()
		if c.Minify { // so that sizes are those of what is written
			first.gpu.buf, first.late.buf = minify(first.gpu.buf), minify(first.late.buf)
			first.cpu.buf = minify(first.cpu.buf)
		}
		out.write(first.cpu.buf)
		size += int64(len(first.cpu.buf) + len(first.gpu.buf) + len(first.late.buf))
		first.reset()
	}

	second := newSimulation(c)
	var late []byte
	for out.err == nil && second.step < first.step {
		second.iteration()
		out.write(second.gpu.buf)
		late = append(late, second.late.buf...)
		second.reset()
	}
	out.write(late)
	second.tail()
	out.write(second.late.buf)
	out.write(footer(c))
	if out.err != nil {
		return counts{}, out.err
	}
	n := counts{Bytes: out.n, Steps: first.step, ByKind: second.count}
	for _, k := range n.ByKind {
		n.Events += k
	}
	return n, nil
}

type counter struct {
	w      io.Writer
	minify bool
	n      int64
	err    error
}

func (c *counter) write(b []byte) {
	if c.err == nil {
		if c.minify {
			b = minify(b)
		}
		var n int
		n, c.err = c.w.Write(b)
		c.n += int64(n)
	}
}
