package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// simulation is one process with one GPU. It keeps to integers, so that every
// machine computes the same trace.
type simulation struct {
	c config
	r *rand.Rand

	cpu, gpu, late events
	count          map[string]int

	ops         []string // names of operators
	step        int
	now         nanos // on the main thread
	busy        nanos // end of the last work on the compute stream
	comm        nanos // end of the last collective
	external    int64 // last External id
	correlation int64
	python      int64
	node        int64
	arrow       int64
	seq         int64
	allocated   int64
}

func newSimulation(c config) *simulation {
	s := &simulation{
		c: c, ops: operators, r: rand.New(rand.NewPCG(c.Seed, uint64(c.Rank)+1)), count: map[string]int{},
		now: originNS, busy: originNS, comm: originNS, correlation: 1000, allocated: 40 << 30,
	}
	for _, e := range []*events{&s.cpu, &s.gpu, &s.late} {
		e.lines, e.count = c.Layout == "2026", s.count
	}
	return s
}

func (s *simulation) reset() {
	s.cpu.buf, s.gpu.buf, s.late.buf = s.cpu.buf[:0], s.gpu.buf[:0], s.late.buf[:0]
}

func (s *simulation) chance(perMille int) bool { return s.r.IntN(1000) < perMille }

func pick[T any](s *simulation, list []T) T { return list[s.r.IntN(len(list))] }

// between returns a duration; short ones are far more frequent than long ones.
func (s *simulation) between(low, high nanos) nanos {
	span := int64(high-low)>>s.r.IntN(8) + 1
	return low + nanos(s.r.Int64N(span))
}

// operator writes a cpu_op.
func (s *simulation) operator(name string, tid int, start, dur nanos) {
	s.external++
	rows, cols := 1<<s.r.IntN(12), pick(s, widths)
	s.cpu.complete("cpu_op", name, processID, tid, start, dur,
		"\"External id\": ", s.external, ",\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"\"], \"Input type\": [\"c10::BFloat16\", \"c10::BFloat16\", \"\"], \"Input Strides\": [[",
		cols, ", 1], [1, ", cols, "], []], \"Input Dims\": [[", rows, ", ", cols, "], [", cols, ", ", rows, "], []], \"Ev Idx\": ", s.external-1)
}

// function writes a python_function, where stacks are recorded.
func (s *simulation) function(start, dur nanos) {
	parent := max(s.python-s.r.Int64N(3), 0)
	name := pick(s, functions)
	if !s.c.Stacks {
		return
	}
	s.python++
	s.cpu.complete("python_function", name, processID, mainThread, start, dur,
		"\"Python parent id\": ", parent, ", \"Python id\": ", s.python, ", \"Ev Idx\": ", s.external)
}

// memory writes an allocation or a release.
func (s *simulation) memory(at nanos) {
	n := int64(512) << s.r.IntN(16)
	if s.r.IntN(2) == 0 {
		n = -n
	}
	s.allocated += n
	s.cpu.instant("cpu_instant_event", "[memory]", processID, mainThread, at,
		"\"Total Reserved\": ", int64(70)<<30, ", \"Total Allocated\": ", s.allocated, ", \"Bytes\": ", n,
		", \"Device Id\": ", s.c.Rank, ", \"Device Type\": 1, \"Addr\": ", 139_900_000_000_000+s.r.Int64N(1<<36)&^511, ", \"Ev Idx\": ", s.external)
}

// call writes a runtime or driver call and returns its correlation ID. A call
// that launches starts an arrow; now and then its record is lost.
func (s *simulation) call(cat, name string, cbid, tid int, start, dur nanos, launches bool) int64 {
	s.correlation += 1 + s.r.Int64N(3)/2
	lost := s.chance(s.c.LostPerMille)
	if launches && lost {
		return s.correlation
	}
	if s.c.AMD {
		s.hipCall(name, cbid, tid, start, dur, launches)
	} else {
		s.gpu.complete(cat, name, processID, tid, start, dur,
			"\"External id\": ", s.external, ",      \"cbid\": ", cbid, ", \"correlation\": ", s.correlation)
	}
	if launches {
		s.gpu.flow("s", "ac2g", s.correlation, processID, tid, start)
	}
	return s.correlation
}

// kernel writes a kernel and the end of its arrow. Collective is the inside of
// its arguments where it is one.
func (s *simulation) kernel(name string, correlation int64, stream int, start, dur nanos, graph int64, collective string) {
	if s.c.AMD {
		if collective == "" {
			name = pick(s, hipKernels)
		}
		s.hipWork("kernel", name, "Dispatch Kernel", correlation, stream, start, dur, collective)
		s.gpu.flow("f", "ac2g", correlation, s.c.Rank, stream, start)
		return
	}
	grid := 1 + s.r.IntN(2047)
	node := int64(0)
	if graph > 0 {
		s.node++
		node = s.node
	}
	s.gpu.complete("kernel", name, s.c.Rank, stream, start, dur,
		"\"External id\": ", s.external, ",      \"queued\": 0, \"device\": ", s.c.Rank, ", \"context\": 1,      \"stream\": ", stream,
		", \"correlation\": ", correlation, ",      \"registers per thread\": ", pick(s, regs), ",      \"shared memory\": ", pick(s, banks),
		",      \"blocks per SM\": ", fmt.Sprintf("%d.%06d", grid/132, grid%132*1_000_000/132),
		",      \"warps per SM\": ", fmt.Sprintf("%d.%06d", grid/33, grid%33*1_000_000/33),
		",      \"grid\": [", grid, ", 1, 1],      \"block\": [", pick(s, threads), ", 1, 1],      \"est. achieved occupancy %\": ", s.r.IntN(101),
		",      \"graph node id\": ", node, ", \"graph id\": ", graph, collective)
	s.gpu.flow("f", "ac2g", correlation, s.c.Rank, stream, start)
}

// copyWork writes a copy or a memset and the end of its arrow.
func (s *simulation) copyWork(cat, name string, correlation int64, stream int, start, dur nanos, graph int64) {
	n := int64(4) << s.r.IntN(22)
	if s.c.AMD {
		s.hipWork(cat, name, strings.TrimPrefix(cat, "gpu_"), correlation, stream, start, dur, ", \"bytes\": ", n)
		s.gpu.flow("f", "ac2g", correlation, s.c.Rank, stream, start)
		return
	}
	s.gpu.complete(cat, name, s.c.Rank, stream, start, dur,
		"\"External id\": ", s.external, ",      \"device\": ", s.c.Rank, ", \"context\": 1,      \"stream\": ", stream,
		", \"correlation\": ", correlation, ",      \"bytes\": ", n, ", \"memory bandwidth (GB/s)\": ",
		fmt.Sprintf("%d.%03d", n/int64(dur), n%int64(dur)*1000/int64(dur)), ",      \"graph node id\": 0, \"graph id\": ", graph)
	s.gpu.flow("f", "ac2g", correlation, s.c.Rank, stream, start)
}
