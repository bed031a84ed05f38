package kineto

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"testing"
)

// FuzzRead feeds arbitrary bytes to the importer: it must not panic, must not
// depend on where the text is cut, and must agree with encoding/json on what
// that accepts.
func FuzzRead(f *testing.F) {
	for _, b := range inputs(f) {
		if len(b) < 5000 {
			f.Add(b, uint16(100))
		}
	}
	for _, s := range []string{
		`[{"ph":"X","ts":1,"dur":2,"name":"a\u00e9\ud83d\ude00","args":{"grid":[1,2,3],"x":[{"a":1},null]}}]`,
		`{"traceEvents":[{"ph":"C","ts":1,"args":{"a":1.5,"b":"x"}},{"ph":"B","ts":1},{"ph":"E","ts":3}],"baseTimeNanoseconds":5}`,
		`{"traceEvents":[{"name":"a"b","ph":"X"},{"ph":"X","ts":nan,"dur":N/A,},]}`,
		`{"traceEvents":[1],"traceEvents":[{"ph":"i","s":"g"}]}`,
	} {
		f.Add([]byte(s), uint16(7))
	}
	f.Fuzz(func(t *testing.T, b []byte, size uint16) {
		if len(b) > 1<<16 {
			t.Skip()
		}
		chunk := max(int(size), len(b)/64, 1)
		want := readAll(t, from(b), Options{Workers: 1})
		got := readAll(t, from(b), Options{Workers: 2, ChunkSize: chunk, RowGroup: 3})
		if d := want.diff(&got); d != "" {
			t.Fatalf("chunk size %d: %s", chunk, d)
		}
		if text := plainText(b); text != nil {
			checkAgainst(t, text, Options{Workers: 1})
		}
	})
}

// FuzzEvent decodes one event with arbitrary keys and values.
func FuzzEvent(f *testing.F) {
	f.Add(`"ph":"X","cat":"kernel"`, `"stream":7,"correlation":"12"`)
	f.Add(`"ph":"X","ts":1e3,"dur":"2.5","pid":"Spans","tid":7.0`, `"Input Dims":[[1,2],[]],"unknown":{"a":[1]}`)
	f.Add(`"ph":"i","id":"0x1f","s":"t"`, `"Bytes":-5,"Addr":18446744073709551615`)
	f.Fuzz(func(t *testing.T, event, args string) {
		text := []byte(`{"traceEvents":[{` + event + `,"args":{` + args + `}},{"ph":"X","ts":1,"dur":1,"name":"next"}]}`)
		if len(text) > 1<<14 || !json.Valid(text) || bytes.Count(text, []byte(`"args"`)) != 1 {
			t.Skip()
		}
		checkAgainst(t, text, Options{Workers: 1})
	})
}

// FuzzNumbers compares the number decoders with math/big and strconv.
func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"0", "-0", "1.5", "123456789012345678", "0.0005", "1e3", "9223372036854775.807", "1.2345", "-7.25", "99999999999999999999", "1e-400", "5e-4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 40 || !json.Valid([]byte(s)) || s[0] != '-' && (s[0] < '0' || s[0] > '9') || s[len(s)-1] <= ' ' {
			t.Skip()
		}
		b := append([]byte(s+","), make([]byte, pad)...)
		want, ok := exactNS(json.Number(s))
		if ns, e, _, fast := parseMicros(b, 0); fast && (!ok || ns != want || e != len(s)) {
			t.Fatalf("parseMicros %s = %d end %d, want %d %v", s, ns, e, want, ok)
		}
		if ns, is := decimalNS(s); ok && (!is || ns != want) {
			t.Fatalf("decimalNS %s = %d %v, want %d", s, ns, is, want)
		}
		if back, is := decimalNS(string(appendMicros(nil, want))); ok && (!is || back != want) {
			t.Fatalf("%d ns became %s, which is %d", want, appendMicros(nil, want), back)
		}
		if v, e, fast := parseInt(b, 0); fast {
			if n, err := strconv.ParseInt(s, 10, 64); err != nil || n != v || e != len(s) {
				t.Fatalf("parseInt %s = %d end %d", s, v, e)
			}
		}
		if v, e, fast := parseFloat(b, 0); fast {
			if x, err := strconv.ParseFloat(s, 64); err != nil || x != v || e != len(s) {
				t.Fatalf("parseFloat %s = %v end %d, want %v", s, v, e, x)
			}
		}
		if v, is := wholeNumber(s); is {
			r := exact(s, 400)
			if r == nil || !r.IsInt() || !r.Num().IsInt64() || r.Num().Int64() != v {
				t.Fatalf("wholeNumber %s = %d", s, v)
			}
		}
	})
}

// FuzzText checks that whatever a string or value holds becomes valid UTF-8
// and valid JSON, and that valid JSON keeps its meaning.
func FuzzText(f *testing.F) {
	for _, s := range []string{`a\n`, `C:\users\x`, `\ud83d`, "\xff", `"a" : [1, 2]`, `{"a": inf, }`, `[nan,"\u12"]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		if len(s) > 1<<14 {
			t.Skip()
		}
		text, flaws := unescape(nil, s)
		q := appendQuoted(nil, text)
		var back string
		if err := json.Unmarshal(q, &back); err != nil || back != string(text) {
			t.Fatalf("%q became %q, which is %q: %v", s, text, back, err)
		}
		if in := append(append([]byte{'"'}, s...), '"'); json.Valid(in) && closing(s, 0) < 0 {
			var want string
			if err := json.Unmarshal(in, &want); err != nil || want != string(text) {
				t.Fatalf("%q is %q, want %q", s, text, want)
			}
			if flaws&flawEscape != 0 {
				t.Fatalf("%q has no invalid escape", s)
			}
		}
		c, flaws := appendCompact(nil, s)
		if len(bytes.TrimSpace(s)) > 0 && !json.Valid(c) {
			t.Fatalf("%q became %q", s, c)
		}
		if json.Valid(s) {
			var a, b any
			da, db := json.NewDecoder(bytes.NewReader(s)), json.NewDecoder(bytes.NewReader(c))
			da.UseNumber()
			db.UseNumber()
			if da.Decode(&a) != nil || db.Decode(&b) != nil || !equalJSON(a, b) || flaws&flawWord != 0 {
				t.Fatalf("%q became %q (%b)", s, c, flaws)
			}
		}
	})
}

func equalJSON(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// FuzzScan checks the scanners: they stay within the text and agree with a
// byte-by-byte reading.
func FuzzScan(f *testing.F) {
	f.Add([]byte(`"a\"b" : [1,{"x":"]"}], 12`))
	f.Add([]byte(`{{{[[[`))
	f.Fuzz(func(t *testing.T, s []byte) {
		b := append(append([]byte(nil), s...), make([]byte, pad)...)
		for i := 0; i <= len(s); i++ {
			want, escaped := short, false
			for k := i; k < len(s); k++ {
				if s[k] == '"' {
					want = k
					break
				}
				if s[k] == '\\' {
					escaped = true
					k++
				}
			}
			if q, e := stringEnd(b, i, len(s)); q != want || q >= 0 && e != escaped {
				t.Fatalf("stringEnd(%q, %d) = %d %v, want %d %v", s, i, q, e, want, escaped)
			}
			if i < len(s) {
				if e := skipValue(b, i, len(s)); e > len(s) || e == 0 || e > 0 && e <= i {
					t.Fatalf("skipValue(%q, %d) = %d", s, i, e)
				}
			}
			if v, n := digits8(b, i); n > 0 {
				x, err := strconv.ParseUint(string(b[i:i+n]), 10, 64)
				if err != nil || x != v || n > 8 || v > math.MaxUint32 {
					t.Fatalf("digits8(%q, %d) = %d, %d", s, i, v, n)
				}
			}
		}
	})
}
