package main

import "testing"

// TestGrowthOf: small heaps grow by a fixed amount, large ones by a share, and
// nothing by more than sixteen times.
func TestGrowthOf(t *testing.T) {
	for live, want := range map[uint64]int{0: 1600, 1 << 20: 1600, 16 << 20: 200, 30 << 20: 100, 64 << 20: 40, 160 << 20: 20, 400 << 20: 10, 1 << 40: 10} {
		if got := growthOf(live); got != want {
			t.Errorf("%d bytes: %d %%, want %d %%", live, got, want)
		}
	}
}
