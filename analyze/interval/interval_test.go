package interval

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name     string
		in, want []Interval
		busy     int64
	}{
		{"empty", nil, nil, 0},
		{"one", []Interval{{1, 3}}, []Interval{{1, 3}}, 2},
		{"touching intervals join", []Interval{{3, 5}, {1, 3}}, []Interval{{1, 5}}, 4},
		{"a gap of one stays", []Interval{{4, 5}, {1, 3}}, []Interval{{1, 3}, {4, 5}}, 3},
		{"nested", []Interval{{1, 9}, {2, 3}}, []Interval{{1, 9}}, 8},
		{"no length alone", []Interval{{5, 5}}, []Interval{{5, 5}}, 0},
		{"no length at an end", []Interval{{5, 5}, {1, 5}}, []Interval{{1, 5}}, 4},
		{"no length at a start", []Interval{{5, 9}, {5, 5}}, []Interval{{5, 9}}, 4},
		{"twice no length", []Interval{{5, 5}, {5, 5}}, []Interval{{5, 5}}, 0},
		{"end before start", []Interval{{9, 2}, {1, 3}}, []Interval{{1, 3}}, 2},
		{"whole range", []Interval{{math.MinInt64, math.MaxInt64}, {0, 1}}, []Interval{{math.MinInt64, math.MaxInt64}}, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.in)
			if got := Merge(c.in); !slices.Equal(got, c.want) {
				t.Errorf("Merge = %v, want %v", got, c.want)
			}
			if !slices.Equal(before, c.in) {
				t.Errorf("Merge changed its argument to %v", c.in)
			}
			if got := busy(c.in); got != c.busy {
				t.Errorf("Busy = %d, want %d", got, c.busy)
			}
			if got := Length(Merge(c.in)); got != c.busy {
				t.Errorf("Length = %d, want %d", got, c.busy)
			}
		})
	}
}

// units marks every unit that the intervals cover, which is the definition
// that the fast functions must agree with.
func units(v []Interval) map[int64]bool {
	set := map[int64]bool{}
	for _, x := range v {
		for i := x.Start; i < x.End; i++ {
			set[i] = true
		}
	}
	return set
}

func check(t *testing.T, v []Interval) {
	t.Helper()
	merged, covered := Merge(v), units(v)
	for i, x := range merged {
		if x.End < x.Start || i > 0 && x.Start <= merged[i-1].End {
			t.Fatalf("Merge(%v) = %v is not merged", v, merged)
		}
	}
	if !reflect.DeepEqual(units(merged), covered) {
		t.Fatalf("Merge(%v) = %v covers something else", v, merged)
	}
	if got := busy(v); got != int64(len(covered)) {
		t.Fatalf("busy time of %v is %d, want %d", v, got, len(covered))
	}
}

// busy is BusySorted of intervals in any order.
func busy(v []Interval) int64 {
	v = slices.Clone(v)
	Sort(v)
	return BusySorted(v)
}

func TestAgainstUnits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() []Interval {
		v := make([]Interval, r.IntN(12))
		for i := range v {
			s := r.Int64N(60)
			v[i] = Interval{s, s + r.Int64N(12) - 1}
		}
		return v
	}
	for range 2000 {
		check(t, random())
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte{1, 3, 3, 5, 9, 2, 5, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		var small, wide []Interval
		for i := 0; i+1 < len(data) && i < 64; i += 2 {
			small = append(small, Interval{int64(data[i]), int64(data[i+1])})
		}
		check(t, small)
		for ; len(data) >= 16; data = data[16:] {
			wide = append(wide, Interval{
				int64(binary.LittleEndian.Uint64(data)), int64(binary.LittleEndian.Uint64(data[8:])),
			})
		}
		if busy(wide) != Length(Merge(wide)) || busy(wide) < 0 {
			t.Fatalf("Busy(%v) = %d, Length of Merge = %d", wide, busy(wide), Length(Merge(wide)))
		}
	})
}
