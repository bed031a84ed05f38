package kineto

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"tracelake/internal/inflate"
)

// plainText returns the text of an input, or nil where it is damaged.
func plainText(b []byte) []byte {
	t, err := openText(bytes.NewReader(b), inflate.Options{})
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(t)
	if err != nil || len(t.notes) > 0 {
		return nil
	}
	return text
}

// TestChunkSize checks that the rows do not depend on where the text is cut,
// on how many workers decode it, or on how the reader hands it out.
func TestChunkSize(t *testing.T) {
	for name, b := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := readAll(t, from(b), Options{Workers: 1})
			// An event that spans many chunks is put together again with each of
			// them, so tiny chunks are for small traces.
			text := plainText(b)
			sizes := []int{150, 4096}
			switch {
			case len(text) > 200_000:
				sizes = []int{len(text)/9 + 1}
			case len(text) < 6000:
				sizes = []int{1, 16, 100, 711}
			}
			for _, size := range sizes {
				got := readAll(t, from(b), Options{Workers: 3, ChunkSize: size, RowGroup: 7})
				if d := want.diff(&got); d != "" {
					t.Fatalf("chunk size %d: %s", size, d)
				}
			}
			got := readAll(t, func() io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) }, Options{Workers: 2, ChunkSize: max(5000, len(text)/7)})
			if d := want.diff(&got); d != "" {
				t.Fatalf("byte by byte: %s", d)
			}
			got = readAll(t, func() io.Reader { return iotest.DataErrReader(bytes.NewReader(b)) }, Options{Workers: 2, ChunkSize: len(text)/2 + 1})
			if d := want.diff(&got); d != "" {
				t.Fatalf("data with EOF: %s", d)
			}
		})
	}
}

// TestCompression checks that the rows do not depend on the compression.
func TestCompression(t *testing.T) {
	for name, b := range inputs(t) {
		text := plainText(b)
		if len(text) == 0 {
			continue
		}
		want := readAll(t, from(text), Options{})
		forms := map[string][]byte{}
		one, zs := gzipped(text), zstandard(text)
		forms["gzip"] = one
		var many bytes.Buffer
		for at := 0; at < len(text); at += len(text)/3 + 1 {
			z := gzip.NewWriter(&many)
			z.Extra = []byte("\x42\x43\x02\x00\x00\x00")
			_, _ = z.Write(text[at:min(len(text), at+len(text)/3+1)])
			_ = z.Close()
		}
		forms["gzip members"] = many.Bytes()
		forms["gzip blocks"] = blocks(text, 1000+len(text)/100)
		forms["gzip padded"] = append(append([]byte(nil), one...), make([]byte, 700)...)
		forms["zstd"] = zs
		forms["zstd frames"] = append(append([]byte(nil), zs[:0]...), zs...)
		for form, x := range forms {
			got := readAll(t, from(x), Options{ChunkSize: max(3000, len(text)/5)})
			if d := want.diff(&got); d != "" {
				t.Errorf("%s as %s: %s", name, form, d)
			}
		}
	}
}

// gzipped compresses a text as one member.
func gzipped(text []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(text)
	_ = z.Close()
	return out.Bytes()
}

// zstandard compresses a text as one frame.
func zstandard(text []byte) []byte {
	var out bytes.Buffer
	z, _ := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	_, _ = z.Write(text)
	_ = z.Close()
	return out.Bytes()
}

// blocks compresses a text as bgzip does: members that say how long they are.
func blocks(text []byte, size int) []byte {
	var out bytes.Buffer
	for at := 0; at < len(text); at += size {
		from := out.Len()
		z := gzip.NewWriter(&out)
		z.Extra = []byte("BC\x02\x00\x00\x00")
		_, _ = z.Write(text[at:min(len(text), at+size)])
		_ = z.Close()
		binary.LittleEndian.PutUint16(out.Bytes()[from+16:], uint16(out.Len()-from-1))
	}
	return out.Bytes()
}

// TestTruncated checks that every prefix of a trace is either rejected or
// partial, keeps all complete events, and never looks whole.
func TestTruncated(t *testing.T) {
	text := inputs(t)["visible/13_no_profilerstep.json"]
	whole := readAll(t, from(text), Options{})
	end := len(bytes.TrimRight(text, " \n"))
	for n := 0; n < end; n += 3 {
		got := readAll(t, from(text[:n]), Options{ChunkSize: 512})
		if got.err != "" {
			continue
		}
		cut := false
		for _, d := range got.diags {
			cut = cut || bytes.HasPrefix([]byte(d), []byte("text_cut"))
		}
		if !cut {
			t.Fatalf("%d of %d bytes look whole: %v", n, len(text), got.diags)
		}
		for tab, rows := range got.rows {
			for i, r := range rows {
				if i >= len(whole.rows[tab]) || r != whole.rows[tab][i] {
					t.Fatalf("%d of %d bytes: row %d of %s is not one of the whole trace: %s", n, len(text), i, tab, r)
				}
			}
		}
	}
}

// TestTruncatedGzip checks the same for a cut compressed stream.
func TestTruncatedGzip(t *testing.T) {
	z := gzipped(inputs(t)["visible/13_no_profilerstep.json"])
	for n := 0; n < len(z); n += 5 {
		got := readAll(t, from(z[:n]), Options{})
		if got.err == "" && len(got.diags) == 0 {
			t.Fatalf("%d of %d bytes look whole", n, len(z))
		}
	}
}
