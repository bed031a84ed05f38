package posindex

import (
	"math/rand/v2"
	"testing"
)

func TestAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 7, 8, 100, 5000} {
		keys := make([]int64, n)
		want := map[int64]int32{}
		table := New(n)
		for i := range keys {
			keys[i] = r.Int64N(int64(n)) - int64(n)/2
			k := keys[i]
			old := table.Put(Hash(k, 0, 0), int32(i), func(p int32) bool { return keys[p] == k })
			if w, ok := want[k]; ok != (old >= 0) || ok && w != old {
				t.Fatalf("n=%d: Put(%d) replaced %d, want %d %v", n, k, old, w, ok)
			}
			want[k] = int32(i)
		}
		for k := int64(-n); k <= int64(n); k++ {
			got := table.Find(Hash(k, 0, 0), func(p int32) bool { return keys[p] == k })
			if w, ok := want[k]; ok && got != w || !ok && got != -1 {
				t.Fatalf("n=%d: Find(%d) = %d, want %d %v", n, k, got, w, ok)
			}
		}
	}
}
