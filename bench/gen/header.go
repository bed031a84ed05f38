package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

const (
	// baseNS is the moment that times count from; Kineto takes a multiple of
	// three months.
	baseNS = 7889238 * 226 * 1_000_000_000
	// originNS is the first moment of the trace after the base, so that times
	// have 13 digits before the point.
	originNS nanos = 5_463_782_346_123_456

	processID    = 4242
	mainThread   = 4242
	helperThread = 4310 // without ranges

	computeStream = 7
	sideStream    = 20
	commStream    = 24
	helperStream  = 33
)

func header(c config) []byte {
	var b strings.Builder
	b.WriteString("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [")
	for i := range c.World {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n    {\n      \"id\": %d, \"name\": \"NVIDIA H100 80GB HBM3\", \"totalGlobalMem\": 84942979072,\n"+
			"      \"computeMajor\": 9, \"computeMinor\": 0,\n      \"maxThreadsPerBlock\": 1024, \"maxThreadsPerMultiprocessor\": 2048,\n"+
			"      \"regsPerBlock\": 65536, \"warpSize\": 32,\n      \"sharedMemPerBlock\": 49152, \"numSms\": 132\n    }", i)
	}
	stacks := 0
	if c.Stacks {
		stacks = 1
	}
	r := rand.New(rand.NewPCG(c.Seed, 0))
	fmt.Fprintf(&b, "\n  ],\n  \"cupti_version\": 26,\n  \"cuda_runtime_version\": 12090,\n  \"cuda_driver_version\": 12090,\n"+
		"  \"record_shapes\": 1,\n  \"profile_memory\": 1,\n  \"with_stack\": %d,\n  \"trace_id\": \"%016X%016X\",\n  \"host_name\": \"node-%d\",\n"+
		"  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": %d,\n  \"traceEvents\": [", stacks, r.Uint64(), r.Uint64(), c.Rank/8, int64(baseNS))
	if c.AMD {
		return []byte(hipHeader.Replace(b.String()))
	}
	return []byte(b.String())
}

func footer(c config) []byte {
	ranks := make([]string, c.World)
	for i := range ranks {
		ranks[i] = fmt.Sprint(i)
	}
	list := strings.Join(ranks, ", ")
	return fmt.Appendf(nil, "\n  ],\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d, \"pg_count\": 1, "+
		"\"pg_config\": [{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": \"cuda:nccl\", \"pg_size\": %d, \"ranks\": [%s]}], "+
		"\"nccl_version\": \"2.27.3\"},\n  \"traceName\": \"traces/rank%d.pt.trace.json\"\n}\n", c.Rank, c.World, c.World, list, c.Rank)
}

// tail appends what Kineto writes behind the GPU events: names of processes
// and threads, the span of the profiler and the end of the recording. The last
// event has no comma.
func (s *simulation) tail() {
	e := &s.late
	quoted := func(text string) string { return "\"" + text + "\"" }
	for _, p := range []struct {
		pid, order  int
		name, label string
	}{{processID, processID, "python3", "CPU"}, {s.c.Rank, 5_000_000 + s.c.Rank, "python3", fmt.Sprint("GPU ", s.c.Rank)}} {
		e.metadata("process_name", "name", quoted(p.name), p.pid, 0, originNS)
		e.metadata("process_labels", "labels", quoted(p.label), p.pid, 0, originNS)
		e.metadata("process_sort_index", "sort_index", fmt.Sprint(p.order), p.pid, 0, originNS)
	}
	for _, tid := range []int{mainThread, helperThread} {
		e.metadata("thread_name", "name", quoted(fmt.Sprintf("thread %d (python3)", tid)), processID, tid, originNS)
	}
	for _, stream := range []int{computeStream, sideStream, commStream, helperStream} {
		e.metadata("thread_name", "name", quoted(fmt.Sprintf("stream %d ", stream)), s.c.Rank, stream, originNS)
	}
	e.count["Trace"]++
	e.add("\n  {\n    \"ph\": \"X\",\n    \"cat\": \"Trace\",\n    \"name\": \"PyTorch Profiler (0)\",\n    \"pid\": \"Spans\",\n    \"tid\": \"PyTorch Profiler\",\n    \"ts\": ",
		originNS, ",\n    \"dur\": ", s.now-originNS, "\n    ,\n    \"args\": {\n      \"Op count\": 0\n    }\n  },")
	e.count["i"] += 2
	e.add("\n  {\n    \"ph\": \"i\",\n    \"s\": \"g\",\n    \"name\": \"Iteration Start: PyTorch Profiler\",\n    \"pid\": \"Traces\",\n    \"tid\": \"Trace PyTorch Profiler\",\n    \"ts\": ",
		originNS, "\n  },\n  {\n    \"ph\": \"i\",\n    \"s\": \"g\",\n    \"name\": \"Record Window End\",\n    \"pid\": \"\",\n    \"tid\": \"\",\n    \"ts\": ", s.now, "\n  }")
}
