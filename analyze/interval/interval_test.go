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
			if got := Busy(c.in); got != c.busy {
				t.Errorf("Busy = %d, want %d", got, c.busy)
			}
			if got := Length(Merge(c.in)); got != c.busy {
				t.Errorf("Length = %d, want %d", got, c.busy)
			}
		})
	}
}

func TestGaps(t *testing.T) {
	merged := []Interval{{2, 4}, {5, 5}, {6, 9}}
	for _, c := range []struct {
		lo, hi int64
		want   []Interval
	}{
		{0, 12, []Interval{{0, 2}, {4, 6}, {9, 12}}},
		{2, 9, []Interval{{4, 6}}},
		{3, 5, []Interval{{4, 5}}},
		{7, 8, nil},
		{8, 3, nil},
		{20, 22, []Interval{{20, 22}}},
	} {
		if got := Gaps(merged, c.lo, c.hi); !reflect.DeepEqual(got, c.want) {
			t.Errorf("Gaps(%d, %d) = %v, want %v", c.lo, c.hi, got, c.want)
		}
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

func check(t *testing.T, a, b []Interval) {
	t.Helper()
	ma, mb := Merge(a), Merge(b)
	for i, x := range ma {
		if x.End < x.Start || i > 0 && x.Start <= ma[i-1].End {
			t.Fatalf("Merge(%v) = %v is not merged", a, ma)
		}
	}
	ua, ub := units(a), units(b)
	if !reflect.DeepEqual(units(ma), ua) {
		t.Fatalf("Merge(%v) = %v covers something else", a, ma)
	}
	if got := Busy(a); got != int64(len(ua)) {
		t.Fatalf("Busy(%v) = %d, want %d", a, got, len(ua))
	}
	common := map[int64]bool{}
	for u := range ua {
		if ub[u] {
			common[u] = true
		}
	}
	if got := Overlap(ma, mb); got != int64(len(common)) {
		t.Fatalf("Overlap(%v, %v) = %d, want %d", ma, mb, got, len(common))
	}
	if got := units(Intersect(ma, mb)); !reflect.DeepEqual(got, common) {
		t.Fatalf("Intersect(%v, %v) covers something else", ma, mb)
	}
	const lo, hi = 3, 50
	gaps := units(Gaps(ma, lo, hi))
	for u := int64(lo); u < hi; u++ {
		if gaps[u] == ua[u] {
			t.Fatalf("Gaps(%v) is wrong at %d", ma, u)
		}
	}
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
		check(t, random(), random())
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte{1, 3, 3, 5, 9, 2, 5, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		var small, wide []Interval
		for i := 0; i+1 < len(data) && i < 64; i += 2 {
			small = append(small, Interval{int64(data[i]), int64(data[i+1])})
		}
		check(t, small, Merge(small)[:len(Merge(small))/2])
		for ; len(data) >= 16; data = data[16:] {
			wide = append(wide, Interval{
				int64(binary.LittleEndian.Uint64(data)), int64(binary.LittleEndian.Uint64(data[8:])),
			})
		}
		if Busy(wide) != Length(Merge(wide)) || Busy(wide) < 0 {
			t.Fatalf("Busy(%v) = %d, Length of Merge = %d", wide, Busy(wide), Length(Merge(wide)))
		}
	})
}
