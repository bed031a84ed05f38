package columnar

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
)

func checkDelta(t *testing.T, v []int64) {
	t.Helper()
	got, err := new(delta.BinaryPackedEncoding).DecodeInt64(nil, appendDelta(nil, v))
	if err != nil {
		t.Fatalf("%d values: %v", len(v), err)
	}
	if !slices.Equal(got, v) {
		t.Fatalf("%d values come back as %d others", len(v), len(got))
	}
}

func checkHybrid(t *testing.T, v []uint32, w uint) {
	t.Helper()
	got, err := (&rle.Encoding{BitWidth: int(w)}).DecodeInt32(nil, appendHybrid(nil, v, w))
	if err != nil {
		t.Fatalf("%d values of %d bits: %v", len(v), w, err)
	}
	// The decoder gives back the padding of the last group as well.
	if len(got) < len(v) {
		t.Fatalf("%d values of %d bits come back as %d", len(v), w, len(got))
	}
	for i, x := range v {
		if uint32(got[i]) != x {
			t.Fatalf("%d bits, value %d of %d is %d, want %d", w, i, len(v), got[i], x)
		}
	}
}

// TestDelta uses every width of differences at every length around a block.
func TestDelta(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 31, 32, 33, 34, 127, 128, 129, 130, 257, 1000} {
		for width := range 65 {
			v := make([]int64, n)
			for i := range v {
				v[i] = int64(r.Uint64() >> (64 - width))
			}
			checkDelta(t, v)
		}
	}
	checkDelta(t, []int64{math.MinInt64, math.MaxInt64, math.MinInt64, 0, -1, math.MaxInt64})
}

// TestHybrid mixes runs of every length with other values at every width.
func TestHybrid(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for w := uint(1); w <= 32; w++ {
		for range 40 {
			var v []uint32
			for range r.IntN(20) {
				x := r.Uint32() >> (32 - w)
				for range r.IntN(70) {
					if v = append(v, x); r.IntN(3) == 0 {
						v = append(v, r.Uint32()>>(32-w))
					}
				}
				v = append(v, slices.Repeat([]uint32{x}, r.IntN(200))...)
			}
			checkHybrid(t, v, w)
		}
	}
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte("01234567abcdefgh"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v := make([]int64, 0, len(b)/8)
		for ; len(b) >= 8; b = b[8:] {
			v = append(v, int64(binary.LittleEndian.Uint64(b)))
		}
		checkDelta(t, v)
	})
}

func FuzzHybrid(f *testing.F) {
	f.Add([]byte{1, 30, 2, 1, 1, 200, 7, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		// Pairs of value and repetition, so that runs are likely.
		var v []uint32
		most := uint32(1)
		for ; len(b) >= 2; b = b[2:] {
			x := uint32(b[0]) * uint32(b[0]) * uint32(b[0])
			most = max(most, x)
			v = append(v, slices.Repeat([]uint32{x}, int(b[1])%70)...)
		}
		checkHybrid(t, v, uint(bits.Len32(most)))
	})
}
