package inflate

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	kgzip "github.com/klauspost/compress/gzip"
)

// result is what reading a stream gives.
type result struct {
	text     []byte
	err      string
	trailing bool
	adopted  int
}

func readWith(src io.Reader, o Options) result {
	r := Open(src, o)
	defer r.Close()
	text, err := io.ReadAll(r)
	res := result{text: text, err: fmt.Sprint(err), trailing: r.Trailing()}
	if r.ahead != nil {
		res.adopted = r.ahead.adopted
	}
	return res
}

// small are limits that make many pieces of little text.
func small(piece int) aheadLimits {
	return aheadLimits{
		minShare: 2, pieces: 6, pieceText: 8 * piece, maxText: 64 * piece, minPiece: piece, maxPiece: 4 * piece,
		failures: 100,
	}
}

// sameAhead reads in order and ahead, once with the work done at once and once
// side by side, and returns how many pieces were adopted of the former.
func sameAhead(t *testing.T, what string, b []byte, piece int) int {
	t.Helper()
	want := readWith(bytes.NewReader(b), Options{})
	adopted := 0
	for _, inline := range []bool{false, true} {
		o := Options{Workers: 4, limits: small(piece)}
		o.limits.inline = inline
		got := readWith(bytes.NewReader(b), o)
		if !bytes.Equal(got.text, want.text) || got.err != want.err || got.trailing != want.trailing {
			t.Fatalf("%s, pieces of %d, at once %v: %d bytes, %s, trailing %v; in order %d bytes, %s, trailing %v; the first difference is at %d",
				what, piece, inline, len(got.text), got.err, got.trailing, len(want.text), want.err, want.trailing, firstDiff(got.text, want.text))
		}
		adopted = got.adopted
	}
	return adopted
}

// farBack is a text whose matches reach as far back as they can.
func farBack() []byte {
	r := rand.New(rand.NewPCG(9, 10))
	part := make([]byte, 32_500)
	for i := range part {
		part[i] = byte('a' + r.IntN(16))
	}
	var b []byte
	for range 30 {
		part[r.IntN(len(part))]++
		b = append(b, part...)
	}
	return b
}

// TestAhead reads streams of many kinds, whole, damaged and cut off.
func TestAhead(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	x := texts()
	x["far back"] = farBack()
	for name, text := range x {
		if len(text) == 200_000 {
			text = bytes.Repeat(text, 3)
		}
		if raceDetector && name != "events" {
			continue
		}
		adopted := 0
		for _, level := range []int{kgzip.HuffmanOnly, kgzip.NoCompression, 1, 9} {
			if raceDetector && level != 9 {
				continue
			}
			b := compress(t, text, level)
			for _, piece := range []int{1, 9000} {
				adopted += sameAhead(t, name, b, piece)
				sameAhead(t, name+" and more", append(bytes.Clone(b), "more"...), piece)
				damaged := bytes.Clone(b)
				damaged[r.IntN(len(b))] ^= 1 << r.IntN(8)
				sameAhead(t, name+" damaged", damaged, piece)
				sameAhead(t, name+" cut off", b[:r.IntN(len(b))], piece)
			}
		}
		t.Logf("%s: %d pieces", name, adopted)
		if slices.Contains([]string{"events", "few", "skewed", "far back"}, name) && adopted < 3 && !raceDetector {
			t.Errorf("%s: only %d pieces were adopted", name, adopted)
		}
	}
}

// TestAheadMembers reads members that do not say how long they are, small and
// large, with zeros between them, damaged and cut off.
func TestAheadMembers(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	text := texts()["events"]
	if raceDetector {
		text = text[:150_000]
	}
	for _, size := range []int{500, 20_000, 300_000} {
		for _, zeros := range []int{0, 7} {
			var b []byte
			for rest := text; len(rest) > 0; {
				k := min(len(rest), 1+r.IntN(2*size))
				b = append(b, compress(t, rest[:k], 1+r.IntN(9))...)
				b = append(b, make([]byte, zeros)...)
				rest = rest[k:]
			}
			what := fmt.Sprintf("members of %d, %d zeros", size, zeros)
			for _, piece := range []int{2000, 10_000} {
				if n := sameAhead(t, what, b, piece); n == 0 && !raceDetector {
					t.Errorf("%s: no piece of %d was adopted", what, piece)
				}
				for range 2 {
					damaged := bytes.Clone(b)
					damaged[r.IntN(len(b))] ^= 1 << r.IntN(8)
					sameAhead(t, what+" damaged", damaged, piece)
					sameAhead(t, what+" cut off", b[:r.IntN(len(b))], piece)
				}
			}
		}
	}
}

// TestAheadMixed reads members before, between and behind blocks that say how
// long they are.
func TestAheadMixed(t *testing.T) {
	text := texts()["events"]
	b := compress(t, text[:300_000], 6)
	b = append(b, blocked(t, text[300_000:500_000], 9000)...)
	b = append(b, compress(t, text[500_000:], 6)...)
	for _, piece := range []int{2000, 4000} {
		if n := sameAhead(t, "mixed", b, piece); n == 0 {
			t.Errorf("no piece of %d was adopted", piece)
		}
		r := rand.New(rand.NewPCG(13, 14))
		for range 30 {
			if raceDetector {
				break
			}
			x := bytes.Clone(b)
			x[r.IntN(len(x))] ^= 1 << r.IntN(8)
			sameAhead(t, "mixed, damaged", x, piece)
		}
	}
}

// TestAheadTraces reads the compressed traces that others recorded.
func TestAheadTraces(t *testing.T) {
	n, adopted := 0, 0
	_ = filepath.WalkDir("../../../shared/traces", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".gz") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(b, magic) || len(b) > 1<<20 || (testing.Short() || raceDetector) && len(b) > 20<<10 {
			return nil
		}
		n++
		adopted += sameAhead(t, path, b, 8000)
		return nil
	})
	if n == 0 {
		t.Skip("no traces beside the repository")
	}
	t.Logf("%d traces, %d pieces", n, adopted)
	if adopted < n && !testing.Short() && !raceDetector {
		t.Errorf("%d pieces of %d traces were adopted", adopted, n)
	}
}

// TestAheadSource passes on what the source does: few bytes at a time, an error
// with or behind the last of them.
func TestAheadSource(t *testing.T) {
	text := texts()["events"]
	b := compress(t, text, 6)
	o := Options{Workers: 4, limits: small(5000)}
	o.limits.inline = true
	failure := errors.New("disk gone")
	for _, open := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		got := readWith(open(bytes.NewReader(b)), o)
		if got.err != "<nil>" || !bytes.Equal(got.text, text) || got.adopted == 0 {
			t.Errorf("%s, %d bytes of %d, %d pieces", got.err, len(got.text), len(text), got.adopted)
		}
		for _, n := range []int{len(b) / 2, len(b) - 3, len(b)} {
			src := func() io.Reader { return open(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(failure))) }
			got, want := readWith(src(), o), readWith(src(), Options{})
			if got.err != want.err || !bytes.Equal(got.text, want.text) || got.err != failure.Error() {
				t.Errorf("%s after %d bytes, in order %s after %d", got.err, len(got.text), want.err, len(want.text))
			}
		}
	}
}

// TestAheadWaits has the workers never begin, or one at a time: what nobody has
// begun is read in order, and the number of goroutines stays small.
func TestAheadWaits(t *testing.T) {
	text := texts()["events"]
	b := compress(t, text, 6)
	before := runtime.NumGoroutine()
	gate := make(chan struct{}, 1)
	gate <- struct{}{}
	o := Options{Workers: 4, limits: small(300), Run: func(f func()) {
		gate <- struct{}{}
		f()
		<-gate
	}}
	r := Open(bytes.NewReader(b), o)
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, text) || r.ahead.adopted != 0 {
		t.Errorf("%v, %d bytes of %d, %d pieces", err, len(got), len(text), r.ahead.adopted)
	}
	if n := runtime.NumGoroutine() - before; n > 2*o.limits.pieces {
		t.Errorf("%d goroutines wait", n)
	}
	<-gate
	r.Close()
	noneLeft(t, before)
	if got := readWith(bytes.NewReader(b), o); got.err != "<nil>" || !bytes.Equal(got.text, text) {
		t.Errorf("one at a time: %s, %d bytes of %d", got.err, len(got.text), len(text))
	}
	noneLeft(t, before)
}

// noneLeft waits for goroutines to end.
func noneLeft(t *testing.T, before int) {
	t.Helper()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines more than before", runtime.NumGoroutine()-before)
}

// TestAheadClosedEarly leaves no goroutine behind wherever reading stops.
func TestAheadClosedEarly(t *testing.T) {
	b := compress(t, texts()["events"], 6)
	before := runtime.NumGoroutine()
	for n := 0; n < 1_000_000; n += 90_000 {
		r := Open(bytes.NewReader(b), Options{Workers: 4, limits: small(1000)})
		if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
			t.Fatal(err)
		}
		r.Close()
		noneLeft(t, before)
	}
}

// TestAheadShare guesses only while the stream may count on enough workers, and
// never in a stream that is short.
func TestAheadShare(t *testing.T) {
	text := bytes.Repeat(texts()["events"], 3)
	b := compress(t, text, 6)
	calls := 0
	o := Options{Workers: 4, limits: small(9000)}
	o.limits.inline = true
	all := readWith(bytes.NewReader(b), o).adopted
	o.Share = func() int { calls++; return []int{4, 1}[calls/10%2] }
	some := readWith(bytes.NewReader(b), o)
	if some.err != "<nil>" || !bytes.Equal(some.text, text) || some.adopted == 0 || some.adopted >= all {
		t.Errorf("%s, %d bytes, %d pieces of %d", some.err, len(some.text), some.adopted, all)
	}
	o.Share = func() int { return 1 }
	long := defaultLimits
	long.skip = int64(len(b))
	for _, o := range []Options{o, {Workers: 1}, {Workers: defaultLimits.minShare - 1}, {Workers: 64, limits: long}} {
		r := Open(bytes.NewReader(b), o)
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
		if r.ahead != nil {
			t.Errorf("%d workers: something was guessed", o.Workers)
		}
		r.Close()
	}
}

// TestAheadMemory holds what a stream keeps against what Memory says.
func TestAheadMemory(t *testing.T) {
	text := bytes.Repeat(texts()["events"], 8)
	b := compress(t, text, 6)
	l := defaultLimits
	l.skip, l.inline = 0, true
	r := Open(bytes.NewReader(b), Options{Workers: 8, limits: l})
	defer r.Close()
	buf := make([]byte, 100_000)
	for err := error(nil); err == nil; _, err = r.Read(buf) {
		a := r.ahead
		if a == nil {
			continue
		}
		held := 0
		for _, m := range a.marks {
			held += 2 * cap(m)
		}
		for _, x := range a.texts {
			held += cap(x)
		}
		for _, p := range a.held {
			held += cap(p.in)
		}
		for _, p := range a.queue {
			held += 2*cap(p.marks) + cap(p.text)
		}
		if a.taken != nil {
			held += cap(a.taken.text)
		}
		if int64(held) > Memory(8) {
			t.Fatalf("%d bytes are held, %d announced", held, Memory(8))
		}
	}
	if r.total != int64(len(text)) || r.ahead.adopted == 0 {
		t.Errorf("%d bytes of %d, %d pieces", r.total, len(text), r.ahead.adopted)
	}
}

// TestFindBlock finds the blocks where a decoder comes to them.
func TestFindBlock(t *testing.T) {
	for _, name := range []string{"events", "skewed", "few"} {
		b := compress(t, texts()[name], 6)
		var want []int64
		d := newDecoder()
		d.reset(bytes.NewReader(b))
		if err := d.header(); err != nil {
			t.Fatal(err)
		}
		d.begin()
		for err := error(nil); err == nil || errors.Is(err, errStop); {
			if d.state == betweenBlocks {
				at := d.bit()
				if err = d.blockHeader(); err == nil && d.state == inCodes && !d.final {
					want = append(want, at)
				}
			}
			d.slide()
			if err == nil || errors.Is(err, errStop) {
				err = decode(&d.stream, &d.output, 0)
			}
		}
		padded := append(bytes.Clone(b), make([]byte, findMargin)...)
		var got []int64
		s := streams.Get()
		for from := 0; from < len(b); {
			at := findBlock(s, padded[from:])
			if at < 0 {
				break
			}
			bit := int64(from)*8 + int64(at)
			if len(got) == 0 || got[len(got)-1] != bit {
				got = append(got, bit)
			}
			from = int(bit/8) + 1
		}
		if len(want) < 2 || !slices.Equal(got, want) {
			t.Errorf("%s: blocks found at %v, they are at %v", name, got, want)
		}
	}
}

func TestFollowedBy(t *testing.T) {
	text := texts()["random"]
	for _, n := range []int{0, 1, 2, 255, 256, 70_000, len(text)} {
		for _, k := range []int{0, 1, 3, 77_777, len(text)} {
			if k < n {
				continue
			}
			var a, b checksum
			a.add(text[:n])
			b.add(text[n:k])
			want := checksum{crc32.ChecksumIEEE(text[:k]), uint32(k)}
			if got := a.followedBy(b); got != want {
				t.Errorf("%d and %d bytes: %x, want %x", n, k-n, got, want)
			}
		}
	}
}

// FuzzAhead compares reading ahead with reading in order, whatever the pieces.
func FuzzAhead(f *testing.F) {
	x := texts()
	x["far back"] = farBack()
	for _, text := range x {
		for _, level := range []int{kgzip.HuffmanOnly, kgzip.NoCompression, 1, 6} {
			f.Add(compress(f, text[:min(len(text), 70_000)], level), uint16(100))
		}
	}
	two := compress(f, x["events"][:50_000], 6)
	f.Add(append(bytes.Clone(two), two...), uint16(1000))
	f.Add(append(blocked(f, x["events"][:9000], 4000), two...), uint16(300))
	f.Fuzz(func(t *testing.T, b []byte, piece uint16) {
		sameAhead(t, "fuzz", b, int(piece%8192)+1)
		// Its own text again behind it, so that marks are met.
		text := readWith(bytes.NewReader(b), Options{}).text
		text = text[:min(len(text), 40_000)]
		for len(text) > 0 && len(text) < 80_000 {
			text = append(text, text...)
		}
		sameAhead(t, "packed again", compress(t, text, 1+int(piece%9)), int(piece%8192)+1)
	})
}
