package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// smallHeap is how much memory is used before garbage is collected at all.
const smallHeap = 64 << 20

// tuneCollector sets how often garbage is collected, unless GOGC says it.
// Almost all memory is columns without pointers, so that collecting often costs
// little and keeps the peak low; but not while the heap is small, where a
// collection frees next to nothing.
func tuneCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	limit := debug.SetMemoryLimit(-1) // as it is, from GOMEMLIMIT or none
	if limit <= smallHeap {
		debug.SetGCPercent(20)
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(smallHeap)
	first := new([16]byte)
	runtime.AddCleanup(first, func(int) {
		debug.SetGCPercent(20)
		debug.SetMemoryLimit(limit)
	}, 0)
}
