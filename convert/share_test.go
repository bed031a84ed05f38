package convert

import "testing"

// TestShare gives each input that is imported just now the same number of
// goroutines to count on.
func TestShare(t *testing.T) {
	c := &importer{o: Options{Workers: 16}}
	for active, want := range map[int64]int{0: 16, 1: 16, 2: 8, 3: 5, 16: 1, 20: 0} {
		c.active.Store(active)
		if got := c.share(); got != want {
			t.Errorf("%d inputs at once: %d goroutines each, want %d", active, got, want)
		}
	}
}
