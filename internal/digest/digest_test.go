package digest

import "testing"

// The values are those of the published test vectors of BLAKE3: the input
// counts 0, 1, … 250 again and again.
func TestVectors(t *testing.T) {
	for n, want := range map[int]string{
		0:      "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		1:      "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
		1025:   "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
		102400: "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085",
	} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i % 251)
		}
		whole, parts := New(), New()
		_, _ = whole.Write(b)
		for len(b) > 0 {
			k := min(len(b), 777)
			_, _ = parts.Write(b[:k])
			b = b[k:]
		}
		if Text(whole) != want || Text(parts) != want {
			t.Errorf("%d bytes: %s and %s, want %s", n, Text(whole), Text(parts), want)
		}
		if !Valid(want) || Valid(want[1:]) || Valid(want[2:]) {
			t.Error("Valid")
		}
	}
}
