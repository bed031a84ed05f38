package kineto

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestNestedCompression: as many compressions around each other as the limit
// says give the rows of the plain text, one more is refused.
func TestNestedCompression(t *testing.T) {
	text := []byte(`{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}]}`)
	plain := readAll(t, from(text), Options{Workers: 1})
	if plain.err != "" || len(plain.rows["gpu_events"]) != 1 {
		t.Fatalf("%+v", plain)
	}
	stored := text
	for layer := 1; layer <= maxNestedGzip+1; layer++ {
		if layer%2 == 0 {
			stored = zstandard(stored)
		} else {
			stored = gzipped(stored)
		}
		got := readAll(t, from(stored), Options{Workers: 1})
		if layer > maxNestedGzip {
			if want := fmt.Sprintf("compressed more than %d times", maxNestedGzip); !strings.Contains(got.err, want) {
				t.Errorf("%d layers: %q, want %q", layer, got.err, want)
			}
			continue
		}
		if got.err != "" || fmt.Sprint(got.rows) != fmt.Sprint(plain.rows) {
			t.Errorf("%d layers: %q %v, want %v", layer, got.err, got.rows, plain.rows)
		}
	}
}

// TestLongValue: an event, or a value of the header, that is longer than the
// limit, by more than what is read at a time, is refused wherever it stands.
func TestLongValue(t *testing.T) {
	const event = `{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 0, "tid": 7, "ts": 1, "dur": 2}`
	for name, c := range map[string]struct{ before, after, want string }{
		"name":                {`{"traceEvents": [` + event + `, {"ph": "X", "name": "`, `"}]}`, "an event is larger than 64 MiB"},
		"value of the header": {`{"traceName": "`, `", "traceEvents": [` + event + `]}`, "no event array in the first 64 MiB"},
		"value behind events": {`{"traceEvents": [` + event + `], "traceName": "`, `"}`, "more than 64 MiB of text behind the events"},
	} {
		t.Run(name, func(t *testing.T) {
			long := func() io.Reader {
				return io.MultiReader(strings.NewReader(c.before), io.LimitReader(letters{}, maxEventBytes+4*DefaultChunkSize), strings.NewReader(c.after))
			}
			got := readAll(t, long, Options{Workers: 1})
			if !strings.Contains(got.err, c.want) {
				t.Errorf("%.200q, want %q", got.err, c.want)
			}
			if len(got.err) > 4096 {
				t.Errorf("the error is %d bytes long", len(got.err))
			}
		})
	}
}

// letters is an endless text.
type letters struct{}

var block = bytes.Repeat([]byte{'x'}, 1<<20)

func (letters) Read(p []byte) (int, error) {
	return copy(p, block), nil
}

// TestCollidingTexts: texts for which the hash of learned texts is the same,
// which anybody can write (it looks at 16 bytes), are told apart. They share
// one slot of a table without chains, so that a collision costs one comparison.
func TestCollidingTexts(t *testing.T) {
	const prefix = "sixteen bytes ..."
	var b bytes.Buffer
	b.WriteString(`{"traceEvents": [`)
	names := map[string]bool{}
	for i := range 3000 {
		if i > 0 {
			b.WriteByte(',')
		}
		name := fmt.Sprint(prefix, i*i%1700)
		names[name] = true
		fmt.Fprintf(&b, `{"ph": "X", "cat": "cpu_op", "name": %q, "pid": 0, "tid": 7, "ts": %d, "dur": 2, "args": {"Fwd thread id": %d, "note": %q}}`, name, i, i, prefix+name)
	}
	b.WriteString(`]}`)
	slot := textHash(append([]byte(prefix), make([]byte, pad)...), 0)
	for name := range names {
		if h := textHash(append([]byte(name), make([]byte, pad)...), 0); h != slot {
			t.Fatalf("%q does not collide", name)
		}
	}
	for _, size := range []int{200, DefaultChunkSize} {
		checkAgainst(t, b.Bytes(), Options{Workers: 1, ChunkSize: size})
	}
	if a, b := newInterner(), newInterner(); a.seed == b.seed {
		t.Error("two tables of names have one seed: a file could be made of names that collide")
	}
}

// TestManyNames: text that has to stay in memory is bounded.
func TestManyNames(t *testing.T) {
	defer func(n int) { maxNameBytes = n }(maxNameBytes)
	maxNameBytes = 1 << 20
	var text strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&text, `{"ph":"X","cat":"kernel","ts":%d,"dur":1,"name":"a long name of a kernel, number %d"},`, i, i)
	}
	if got := readAll(t, from([]byte(`{"traceEvents":[`+text.String()+`{}]}`)), Options{Workers: 1, ChunkSize: 64 << 10}); !strings.Contains(got.err, "more than 1 MiB of different names") {
		t.Error(got.err)
	}
	same := strings.Repeat(`{"ph":"X","cat":"kernel","ts":1,"dur":1,"name":"a long name of a kernel"},`, 40_000)
	if got := readAll(t, from([]byte(`{"traceEvents":[`+same+`{}]}`)), Options{Workers: 1, ChunkSize: 64 << 10}); got.err != "" {
		t.Error(got.err)
	}
}
