package inflate

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	kgzip "github.com/klauspost/compress/gzip"
)

// gzipReader is what both reference readers have.
type gzipReader interface {
	io.Reader
	Multistream(bool)
}

func openStandard(r io.Reader) (gzipReader, error)  { return gzip.NewReader(r) }
func openKlauspost(r io.Reader) (gzipReader, error) { return kgzip.NewReader(r) }

// outcome is what reading a stream to its end gives.
type outcome struct {
	text []byte
	err  string // class of the error
}

func class(err error) string {
	var c *CorruptError
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return ""
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "cut"
	case errors.Is(err, ErrChecksum), errors.Is(err, kgzip.ErrChecksum), errors.Is(err, gzip.ErrChecksum):
		return "checksum"
	case errors.Is(err, ErrHeader), errors.Is(err, kgzip.ErrHeader), errors.Is(err, gzip.ErrHeader):
		return "header"
	case errors.As(err, &c), strings.Contains(err.Error(), "corrupt"):
		return "corrupt"
	default:
		return err.Error()
	}
}

// ours reads with a given size of reads.
func ours(src io.Reader, size int) outcome {
	r := Open(src, Options{Workers: 3})
	defer r.Close()
	var out []byte
	buf := make([]byte, size)
	for {
		n, err := r.Read(buf)
		out = append(out, buf[:n]...)
		if err != nil {
			return outcome{out, class(err)}
		}
	}
}

// theirs is a reference: the members one after another, zeros between them.
func theirs(b []byte, open func(io.Reader) (gzipReader, error)) outcome {
	var out []byte
	src := bytes.NewReader(b)
	for first := true; ; first = false {
		if !first {
			c, err := byte(0), error(nil)
			for c == 0 && err == nil {
				c, err = src.ReadByte()
			}
			if err != nil {
				return outcome{out, ""}
			}
			_ = src.UnreadByte()
			if rest := b[len(b)-src.Len():]; !bytes.HasPrefix(rest, magic) {
				return outcome{out, ""}
			}
		}
		z, err := open(src)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return outcome{out, class(err)}
		}
		z.Multistream(false)
		text, err := io.ReadAll(z)
		out = append(out, text...)
		if err != nil {
			return outcome{out, class(err)}
		}
	}
}

// compare reads with both references. They refuse the same streams, but for
// headers that only one of them refuses. In front of damage they may lack the
// last symbols, as they want more bits than these take. klauspost's also goes on
// with a code that has no end of block, which zlib and the standard library
// refuse: then the latter alone counts.
func compare(t *testing.T, b []byte, sizes ...int) {
	t.Helper()
	refs := []outcome{theirs(b, openKlauspost), theirs(b, openStandard)}
	if refs[0].err == "header" {
		refs = refs[:1]
	} else if refs[0].err != "" && refs[1].err == "corrupt" && len(refs[0].text) > len(refs[1].text) {
		refs = refs[1:]
	}
	for _, size := range sizes {
		got := ours(bytes.NewReader(b), size)
		for i, want := range refs {
			if (got.err == "") != (want.err == "") {
				t.Fatalf("reads of %d: error %q, reference %d %q", size, got.err, i, want.err)
			}
			lacks := len(got.text) - len(want.text)
			if !bytes.HasPrefix(got.text, want.text) || lacks > 0 && (got.err == "" || lacks > 64*maxLength) {
				t.Fatalf("reads of %d: %d bytes of text (%s), reference %d has %d (%s); the first difference is at %d", size, len(got.text), got.err, i, len(want.text), want.err, firstDiff(got.text, want.text))
			}
		}
	}
}

func firstDiff(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func compress(t testing.TB, text []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := kgzip.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// texts are texts of many kinds: events, one byte, random bytes, few symbols.
func texts() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	var events bytes.Buffer
	for i := range 9000 {
		fmt.Fprintf(&events, "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm_%d\", \"ts\": %d.%03d, \"dur\": %d,\n    \"args\": {\"stream\": %d, \"correlation\": %d}\n  },\n", r.IntN(40), 1e9+i*17, r.IntN(1000), r.IntN(900), r.IntN(9), i)
	}
	random := make([]byte, 200_000)
	few := make([]byte, 200_000)
	for i := range random {
		random[i] = byte(r.Uint32())
		few[i] = "ab\x00\xff"[r.IntN(4)>>r.IntN(3)]
	}
	skewed := make([]byte, 0, 200_000) // long codes
	for i := 0; len(skewed) < 200_000; i++ {
		b := 0
		for b < 255 && r.IntN(3) > 0 {
			b++
		}
		skewed = append(skewed, byte(b))
	}
	return map[string][]byte{
		"empty": nil, "one": []byte("x"), "zeros": make([]byte, 500_000), "events": events.Bytes(),
		"random": random, "few": few, "skewed": skewed, "period": bytes.Repeat([]byte("abcdefghijklmnopq"), 20_000),
	}
}

func TestTexts(t *testing.T) {
	for name, text := range texts() {
		for _, level := range []int{kgzip.HuffmanOnly, kgzip.NoCompression, 1, 9} {
			b := compress(t, text, level)
			got := ours(bytes.NewReader(b), 1<<16)
			if got.err != "" || !bytes.Equal(got.text, text) {
				t.Errorf("%s at level %d: %q, %d bytes of %d", name, level, got.err, len(got.text), len(text))
			}
		}
		b := compress(t, text, 6)
		small := text[:min(len(text), 20_000)]
		compare(t, compress(t, small, 6), 7, 30_000)
		if got := ours(iotest.OneByteReader(bytes.NewReader(compress(t, small, 6))), 100); got.err != "" || !bytes.Equal(got.text, small) {
			t.Errorf("%s byte by byte: %q, %d bytes of %d", name, got.err, len(got.text), len(small))
		}
		for _, src := range []io.Reader{
			iotest.DataErrReader(bytes.NewReader(b)), iotest.HalfReader(bytes.NewReader(b)),
		} {
			if got := ours(src, 10_000); got.err != "" || !bytes.Equal(got.text, text) {
				t.Errorf("%s through %T: %q, %d bytes of %d", name, src, got.err, len(got.text), len(text))
			}
		}
	}
}

// TestMembers joins members, with zeros and with other bytes behind them.
func TestMembers(t *testing.T) {
	x := texts()
	var all, text []byte
	for _, name := range []string{"events", "empty", "few", "one", "random", "period"} {
		all = append(all, compress(t, x[name], 5)...)
		all = append(all, make([]byte, len(name)*7)...)
		text = append(text, x[name]...)
	}
	compare(t, all, 1000)
	if got := ours(bytes.NewReader(all), 1<<20); !bytes.Equal(got.text, text) {
		t.Errorf("%d bytes, want %d", len(got.text), len(text))
	}
	for _, tail := range []string{"", "\x00\x00", "\x00\x1f", "x", "\x1f\x8b", "\x1f\x8b\x08\x00"} {
		b := append(append([]byte(nil), all...), tail...)
		compare(t, b, 5000)
		r := Open(bytes.NewReader(b), Options{})
		_, _ = io.Copy(io.Discard, r)
		if want := tail == "x" || tail == "\x00\x1f"; r.Trailing() != want {
			t.Errorf("%q behind the stream: trailing %v", tail, r.Trailing())
		}
	}
}

// TestHeaders reads headers with every optional part, whole and cut off.
func TestHeaders(t *testing.T) {
	body := compress(t, []byte("text"), 6)[10:]
	for flags := range 256 {
		h := []byte{0x1f, 0x8b, 8, byte(flags), 1, 2, 3, 4, 5, 6}
		if flags&flagExtra != 0 {
			h = append(h, 0x10, 0x27)
			h = append(h, make([]byte, 10_000)...)
		}
		if flags&flagName != 0 {
			h = append(h, "name\x00"...)
		}
		if flags&flagComment != 0 {
			h = append(h, strings.Repeat("c", 511)+"\x00"...)
		}
		if flags&flagHeaderCRC != 0 {
			h = binary.LittleEndian.AppendUint16(h, uint16(crc32.ChecksumIEEE(h)))
		}
		b := append(h, body...)
		compare(t, b, 100)
		for n := 0; n < len(h); n += 1 + len(h)/40 {
			compare(t, b[:n], 100)
		}
		b[len(h)-1] ^= 1
		compare(t, b, 100)
	}
	long := append([]byte{0x1f, 0x8b, 8, flagName, 0, 0, 0, 0, 0, 0}, strings.Repeat("n", 512)+"\x00"...)
	compare(t, append(long, body...), 100)
}

// TestCut cuts streams everywhere: all text in front of the cut is there, and
// the error says that the stream is cut off.
func TestCut(t *testing.T) {
	for name, text := range texts() {
		text = text[:min(len(text), 500)]
		for _, level := range []int{kgzip.HuffmanOnly, kgzip.NoCompression, 1, 6} {
			b := compress(t, text, level)
			for n := range len(b) {
				compare(t, b[:n], 1<<16)
				if got := ours(bytes.NewReader(b[:n]), 1<<16); got.err != "cut" || !bytes.HasPrefix(text, got.text) {
					t.Fatalf("%s, level %d, %d of %d bytes: %q", name, level, n, len(b), got.err)
				}
			}
		}
	}
}

// TestDamage changes bytes: both decoders give the same text and refuse the
// same streams.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, text := range texts() {
		for _, level := range []int{kgzip.HuffmanOnly, 1, 6} {
			b := compress(t, text[:min(len(text), 20_000)], level)
			for range 30 {
				x := bytes.Clone(b)
				x[10+r.IntN(len(x)-10)] ^= 1 << r.IntN(8)
				compare(t, x, 5000)
			}
		}
	}
}

// TestSourceFails passes on what the source failed with, behind the text.
func TestSourceFails(t *testing.T) {
	text := texts()["events"]
	b := compress(t, text, 6)
	failure := errors.New("disk gone")
	r := Open(io.MultiReader(bytes.NewReader(b[:len(b)/2]), iotest.ErrReader(failure)), Options{})
	got, err := io.ReadAll(r)
	if !errors.Is(err, failure) || !bytes.HasPrefix(text, got) || len(got) < len(text)/3 {
		t.Errorf("%v after %d bytes of %d", err, len(got), len(text))
	}
}

func TestOffset(t *testing.T) {
	text := texts()["events"]
	b := compress(t, text, 6)
	at := len(b) / 2
	copy(b[at:], bytes.Repeat([]byte{0xff}, 100))
	_, err := io.ReadAll(Open(bytes.NewReader(b), Options{}))
	var c *CorruptError
	if !errors.As(err, &c) || c.Offset < int64(at)-100 || c.Offset > int64(at)+20_000 {
		t.Errorf("%v, damage is at %d", err, at)
	}
}

// TestTraces reads the compressed traces that others recorded.
func TestTraces(t *testing.T) {
	n := 0
	_ = filepath.WalkDir("../../../shared/traces", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".gz") {
			return nil
		}
		if st, err := e.Info(); err != nil || st.Size() > 60<<10 {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(b, magic) {
			return nil
		}
		n++
		compare(t, b, 4093)
		return nil
	})
	if n == 0 {
		t.Skip("no traces beside the repository")
	}
	t.Logf("%d traces", n)
}

// blocked compresses a text as blocks that say their size, with an empty one at
// the end.
func blocked(t testing.TB, text []byte, size int) []byte {
	var out []byte
	for {
		k := min(size, len(text))
		b := compress(t, text[:k], 6)
		text = text[k:]
		out = append(out, 0x1f, 0x8b, 8, flagExtra, 0, 0, 0, 0, 0, 0xff, 6, 0, 'B', 'C', 2, 0)
		out = binary.LittleEndian.AppendUint16(out, uint16(len(b)-10+blockHeader-1))
		out = append(out, b[10:]...)
		if k == 0 {
			return out
		}
	}
}

// TestBlocks reads blocks side by side, whole, cut off, damaged, and with sizes
// that lie.
func TestBlocks(t *testing.T) {
	text := texts()["events"]
	b := blocked(t, text, 50_000)
	if got := ours(bytes.NewReader(b), 1<<16); got.err != "" || !bytes.Equal(got.text, text) {
		t.Fatalf("%q, %d bytes of %d", got.err, len(got.text), len(text))
	}
	for _, text := range texts() {
		for _, size := range []int{1500, 60_000} {
			text := text[:min(len(text), 90_000)]
			b := blocked(t, text, size)
			compare(t, b, 333)
			compare(t, append(b, compress(t, text, 5)...), 5000)
			compare(t, append(append(compress(t, text, 5), make([]byte, 9)...), b...), 5000)
			compare(t, append(b, "trailing"...), 5000)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	small := blocked(t, text[:100_000], 3000)
	for range 100 {
		x := bytes.Clone(small)
		x[r.IntN(len(x))] ^= 1 << r.IntN(8)
		compare(t, x, 5000)
		compare(t, small[:r.IntN(len(small))], 5000)
	}
	for at := 0; at < len(small); { // the size of every block in turn
		n := blockSize(small[at:])
		for _, lie := range []int{0, n - 9, n, n + 20, 65535} {
			x := bytes.Clone(small)
			binary.LittleEndian.PutUint16(x[at+16:], uint16(lie))
			got := ours(bytes.NewReader(x), 5000)
			if got.err != "" || !bytes.Equal(got.text, text[:100_000]) {
				t.Fatalf("block at %d says %d: %q, %d bytes", at, lie, got.err, len(got.text))
			}
		}
		at += n
	}
}

// TestBlocksSideBySide checks that blocks are handed to several goroutines and
// that all of them can wait for one token.
func TestBlocksSideBySide(t *testing.T) {
	text := texts()["events"]
	gate := make(chan struct{}, 1)
	var ran atomic.Int64
	r := Open(bytes.NewReader(blocked(t, text, 8000)), Options{Workers: 4, Run: func(f func()) {
		gate <- struct{}{}
		f()
		<-gate
		ran.Add(1)
	}})
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("%v, %d bytes of %d", err, len(got), len(text))
	}
	if want := int64(len(text)/8000/batchBlocks + 1); ran.Load() < want {
		t.Errorf("%d pieces of work, want %d", ran.Load(), want)
	}
	if len(r.spare) > 8 {
		t.Errorf("%d batches were made", len(r.spare))
	}
}

// FuzzReader compares with the reference: text, and which streams are refused.
func FuzzReader(f *testing.F) {
	for _, text := range texts() {
		for _, level := range []int{kgzip.HuffmanOnly, kgzip.NoCompression, 1, 6} {
			f.Add(compress(f, text[:min(len(text), 600)], level), uint16(100))
		}
	}
	f.Add(blocked(f, texts()["events"][:900], 400), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, size uint16) {
		check := func(b []byte) { compare(t, b, int(size)+1, 1<<17) }
		check(b)
		// A stream as it is without a header, so that the body is what changes.
		check(append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0}, b...))
	})
}
