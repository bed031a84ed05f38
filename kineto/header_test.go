package kineto

import (
	"bytes"
	"strings"
	"testing"
)

// TestOddHeader: what a field of the header cannot hold stays in the rest.
func TestOddHeader(t *testing.T) {
	for text, want := range map[string]string{
		`"distributedInfo":{"rank":1.5,"world_size":"x","pg_count":3,"pg_config":[{}]}`:        `{"distributedInfo":{"pg_count":3,"rank":1.5,"world_size":"x"}}`,
		`"distributedInfo":{"rank":-1,"world_size":0}`:                                         `{"distributedInfo":{"rank":-1,"world_size":0}}`,
		`"distributedInfo":{"rank":"3","world_size":4.0,"pg_count":1,"pg_config":[{"a":[1]}]}`: ``,
		`"distributedInfo":{"rank":null,"backend":"nccl"}`:                                     ``,
		`"baseTimeNanoseconds":7.25`:                                                           `{"baseTimeNanoseconds":7.25}`,
		`"baseTimeNanoseconds":"soon"`:                                                         `{"baseTimeNanoseconds":"soon"}`,
		`"baseTimeNanoseconds":null`:                                                           ``,
		`"deviceProperties":[{"id":0,"numSms":1},{"name":"odd"},5]`:                            `{"deviceProperties":[{"name":"odd"},5]}`,
		`"deviceProperties":{"id":0}`:                                                          `{"deviceProperties":{"id":0}}`,
	} {
		_, res, err := readRows(t, []byte(`{`+text+`,"traceEvents":[{"ph":"X","ts":1,"dur":1}]}`), Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Header.RestJSON(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	_, res, err := readRows(t, []byte(`{"distributedInfo":{"rank":1.5},"baseTimeNanoseconds":7.25,"deviceProperties":[{"name":"x"},{"id":2,"smem":1}],"traceEvents":[{"ph":"X","ts":1,"dur":1}]}`), Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if h := res.Header; h.Rank.V != 1 || h.BaseNS.V != 7 || len(h.Devices) != 1 || h.Devices[0].Ordinal.V != 2 || h.Devices[0].Rest != `{"smem":1}` {
		t.Errorf("%+v", h)
	}
}

// TestDamagedIsNotEmpty: where a text is none because its compressed form is damaged,
// the error says so.
func TestDamagedIsNotEmpty(t *testing.T) {
	text := []byte(`{"schemaVersion":1,"traceEvents":[{"ph":"X","ts":1,"dur":1}]}`)
	gz, zs := gzipped(text), zstandard(text)
	broken := bytes.Clone(zs)
	broken[len(broken)/2] ^= 0xff
	for name, c := range map[string]struct {
		stored []byte
		want   string
	}{
		"gzip, cut at the start": {gz[:12], "ends early"},
		"gzip, damaged":          {append(append([]byte(nil), gz[:10]...), 0xff, 0xff, 0xff, 0xff), "damaged"},
		"zstd, cut":              {zs[:len(zs)/3], "ends early"},
		"zstd, damaged":          {broken, "compressed stream"},
	} {
		got := readAll(t, from(c.stored), Options{Workers: 1})
		if !strings.Contains(got.err, c.want) || !strings.Contains(got.err, "copy the file again") {
			t.Errorf("%s: %q, want %q", name, got.err, c.want)
		}
	}
	for _, text := range []string{`{"traceEvents":"x"}`, `{"traceEvents":{}}`, `{"a":1,"traceEvents":null}`} {
		if got := readAll(t, from([]byte(text)), Options{Workers: 1}); !strings.Contains(got.err, "traceEvents is no array") {
			t.Errorf("%s: %q", text, got.err)
		}
	}
}
