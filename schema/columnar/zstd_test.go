package columnar

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"

	"tracelake/schema"
)

// TestStoredPages: what does not compress is stored, in frames that a decoder
// of zstd reads.
func TestStoredPages(t *testing.T) {
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e := NewEncoder(&schema.TableCounters, Options{})
	random := rand.NewChaCha8([32]byte{})
	for _, n := range []int{0, 1, tinyBytes, tinyBytes + 1, 255, 256, 4096, sampleFrom - 1, sampleFrom, zstdBlock - 1, zstdBlock, zstdBlock + 1, 3*zstdBlock + 7} {
		page := make([]byte, n)
		_, _ = random.Read(page)
		for _, frame := range [][]byte{appendStored(nil, page), e.appendZstd([]byte("before"), page)[6:]} {
			got, err := d.DecodeAll(frame, nil)
			if err != nil || !bytes.Equal(got, page) {
				t.Fatalf("%d bytes: %v, %d bytes back", n, err, len(got))
			}
			if len(frame) > n+32 {
				t.Errorf("%d bytes take %d", n, len(frame))
			}
		}
		text := bytes.Repeat([]byte("abcd"), n/4)
		if frame := e.appendZstd(nil, text); len(frame) > 128 {
			t.Errorf("%d bytes of a repeated text take %d", len(text), len(frame))
		}
	}
}
