package unpack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"tracelake/internal/inflate"
)

// maxOutput is how much of a text the test reads.
const maxOutput = 8 << 20

// FuzzOpen reads arbitrary stored forms. What the standard library reads of
// gzip is read alike, in order and by several goroutines; a zstd header
// takes no more memory than the largest window.
func FuzzOpen(f *testing.F) {
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, _ = g.Write([]byte(`{"traceEvents":[]}`))
	_ = g.Close()
	z, err := zstd.NewWriter(&zs, zstd.WithEncoderConcurrency(1))
	if err != nil {
		f.Fatal(err)
	}
	_, _ = z.Write(bytes.Repeat([]byte(`{"ph":"X"},`), 50))
	_ = z.Close()
	for _, seed := range [][]byte{
		{},
		[]byte("[]"), gz.Bytes(), zs.Bytes(), append(bytes.Clone(gz.Bytes()), gz.Bytes()...), append(bytes.Clone(zs.Bytes()), zs.Bytes()...),
		append(bytes.Clone(gz.Bytes()), 0, 0, 0), []byte("\x28\xb5\x2f\xfd\x04\xff\x01\x00\x00"), []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd\x28\xb5\x2f\xfd"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		if len(stored) > 1<<16 {
			t.Skip()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		one, oneErr := readOne(t, stored, inflate.Options{})
		runtime.ReadMemStats(&after)
		if FormOf(stored) == Zstd && len(one) < 1<<10 && after.TotalAlloc-before.TotalAlloc > maxWindow+16<<20 {
			t.Fatalf("%d MiB taken for %d bytes", (after.TotalAlloc-before.TotalAlloc)>>20, len(stored))
		}
		many, manyErr := readOne(t, stored, inflate.Options{Workers: 3})
		if !bytes.Equal(one, many) || (oneErr == nil) != (manyErr == nil) {
			t.Fatalf("in order %d bytes and %v, by several %d and %v", len(one), oneErr, len(many), manyErr)
		}
		if FormOf(stored) != Gzip || oneErr != nil {
			return
		}
		std, err := gzip.NewReader(bytes.NewReader(stored))
		if err != nil {
			t.Fatalf("read, though the standard library refuses the header: %v", err)
		}
		want, err := io.ReadAll(io.LimitReader(std, maxOutput))
		// It does not know bytes or padding behind the last member.
		if err != nil && !errors.Is(err, gzip.ErrHeader) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("read, though the standard library says %v", err)
		}
		if !bytes.Equal(want, one) {
			t.Fatalf("%d bytes, the standard library reads %d", len(one), len(want))
		}
	})
}

func readOne(t *testing.T, stored []byte, o inflate.Options) ([]byte, error) {
	t.Helper()
	br := bufio.NewReader(bytes.NewReader(stored))
	l, err := Open(br, o)
	if err != nil {
		return nil, err
	}
	if l == nil {
		if FormOf(stored) != Plain {
			t.Fatal("compressed text taken for plain")
		}
		return io.ReadAll(br)
	}
	defer l.Close()
	text, err := io.ReadAll(io.LimitReader(l, maxOutput))
	_ = l.Trailing()
	return text, err
}
