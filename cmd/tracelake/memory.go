package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// smallHeap is how much memory is used before garbage is collected at all.
	smallHeap = 64 << 20
	// smallGrowth is how much is allocated between two collections at least.
	smallGrowth = 32 << 20
	// growth is how much a large heap grows between two collections, in percent.
	growth = 10
	// growthStep is the step in which smaller ones grow less and less.
	growthStep = 20
)

// tuneCollector sets how often garbage is collected, unless GOGC says it.
// Almost all memory is columns without pointers, so that collecting often costs
// little and keeps the peak low; but not while the heap is small, where a
// collection frees next to nothing: of the import of a thousand small files it
// took a third.
func tuneCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	limit := debug.SetMemoryLimit(-1) // as it is, from GOMEMLIMIT or none
	if limit <= smallHeap {
		debug.SetGCPercent(growth)
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(smallHeap)
	percent := 0
	afterCollections(func(live uint64) {
		if percent == 0 {
			debug.SetMemoryLimit(limit)
		}
		if now := growthOf(live); now != percent {
			percent = now
			debug.SetGCPercent(now)
		}
	})
}

// growthOf returns how much a heap of which so much is in use may grow, in
// percent, in steps so that it seldom changes.
func growthOf(live uint64) int {
	return max(growth, int(100*smallGrowth/max(live, smallGrowth/16))/growthStep*growthStep)
}

// afterCollections calls f after each collection with the bytes in use.
func afterCollections(f func(live uint64)) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var arm func()
	arm = func() {
		runtime.AddCleanup(new([16]byte), func(int) {
			metrics.Read(sample)
			f(sample[0].Value.Uint64())
			arm()
		}, 0)
	}
	arm()
}
