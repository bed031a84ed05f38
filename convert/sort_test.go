package convert

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"tracelake/schema"
)

func TestSortRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		vals := make([]int64, r.IntN(n+1))
		for i := range vals {
			switch {
			case r.IntN(8) == 0:
				vals[i] = schema.Null
			case i > 0 && r.IntN(4) > 0 && vals[i-1] != schema.Null:
				vals[i] = vals[i-1] + r.Int64N(3)
			default:
				vals[i] = r.Int64N(50) - 25
			}
		}
		want := make([]int32, len(vals))
		for i := range want {
			want[i] = int32(i)
		}
		sort.SliceStable(want, func(a, b int) bool {
			x, y := vals[want[a]], vals[want[b]]
			return x != schema.Null && (y == schema.Null || x < y)
		})
		if got := sortRuns(vals); !slices.Equal(got, want) {
			t.Fatalf("%v: %v, want %v", vals, got, want)
		}
	}
}
