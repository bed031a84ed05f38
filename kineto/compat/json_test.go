package compat

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ in, want string }{ // want is Python's repr, or its message
		{`{"a":1,"b":2,"a":3}`, `{'a': 3, 'b': 2}`},
		{`[NaN, Infinity, -Infinity, 1e999, -0, -0.0]`, `[nan, inf, -inf, inf, 0, -0.0]`},
		{`[18446744073709551621, 1.5, 1e16, 1e-5, 0.0001, 123456789012345.6]`, `[18446744073709551621, 1.5, 1e+16, 1e-05, 0.0001, 123456789012345.6]`},
		{`"\ud83d\ude00 \ud800 \udc00\ud800"`, `'😀 \ud800 \udc00\ud800'`},
		{`"\ud800\u0041"`, `'\ud800A'`},
		{`"it's"`, `"it's"`},
		{`"it's \"so\""`, `'it\'s "so"'`},
		{`"\u0000\t\n\r\u007f\u00a0\u200b"`, `'\x00\t\n\r\x7f\xa0\u200b'`},
		{" \t\r\n[ ] ", `[]`},
		{deep(995), deep(995)},

		{``, `Expecting value: line 1 column 1 (char 0)`},
		{deep(996), `arrays and objects nest deeper than 995`},
		{`[1,]`, `Expecting value: line 1 column 4 (char 3)`},
		{`{"a":1,}`, `Expecting property name enclosed in double quotes: line 1 column 8 (char 7)`},
		{`{"a" 1}`, `Expecting ':' delimiter: line 1 column 6 (char 5)`},
		{`{"a":}`, `Expecting value: line 1 column 6 (char 5)`},
		{"[1\n 2]", `Expecting ',' delimiter: line 2 column 2 (char 4)`},
		{`"ä`, `Unterminated string starting at: line 1 column 1 (char 0)`},
		{`["ä", x]`, `Expecting value: line 1 column 7 (char 6)`},
		{`"\x"`, `Invalid \escape: line 1 column 2 (char 1)`},
		{`"\u12"`, `Invalid \uXXXX escape: line 1 column 3 (char 2)`},
		{"\"\x01\"", `Invalid control character at: line 1 column 2 (char 1)`},
		{`01`, `Extra data: line 1 column 2 (char 1)`},
		{`1.`, `Extra data: line 1 column 2 (char 1)`},
		{`-`, `Expecting value: line 1 column 1 (char 0)`},
		{"\ufeff1", `Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)`},
	} {
		v, err := parse([]byte(c.in))
		got := string(v.appendRepr(nil))
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%.40q: got %.100s, want %.100s", c.in, got, c.want)
		}
	}
	if _, err := parse([]byte(strings.Repeat("9", 4301))); err == nil {
		t.Error("an integer of 4301 digits was accepted")
	}
}

func TestManyKeys(t *testing.T) {
	var doc bytes.Buffer
	doc.WriteByte('{')
	for i := range 200 {
		doc.WriteString(`"k` + strconv.Itoa(i%50) + `":` + strconv.Itoa(i) + `,`)
	}
	doc.WriteString(`"":0}`)
	v, err := parse(doc.Bytes())
	if err != nil || len(v.obj) != 51 {
		t.Fatalf("%d keys, %v", len(v.obj), err)
	}
	for i := range 50 {
		if got := v.obj[i]; got.key != "k"+strconv.Itoa(i) || got.val.i != int64(150+i) {
			t.Errorf("key %d: %s is %d", i, got.key, got.val.i)
		}
	}
}

// agrees compares a value with what encoding/json made of the same text.
func agrees(v *value, want any) bool {
	switch want := want.(type) {
	case nil:
		return v.kind == null
	case bool:
		return v.kind == boolean && v.b == want
	case string: // which has U+FFFD for a surrogate without its partner
		return v.kind == text && strings.ToValidUTF8(v.s, "\ufffd") == want ||
			v.kind == text && !utf8.ValidString(v.s) && strings.Contains(want, "\ufffd")
	case json.Number:
		if strings.ContainsAny(string(want), ".eE") {
			f, _ := strconv.ParseFloat(string(want), 64)
			return v.kind == float && v.f == f
		}
		n, ok := new(big.Int).SetString(string(want), 10)
		return ok && v.kind == integer && n.String() == v.str()
	case []any:
		if v.kind != array || len(v.list) != len(want) {
			return false
		}
		for i := range want {
			if !agrees(&v.list[i], want[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		if v.kind != object {
			return false
		}
		for i := range v.obj {
			w, ok := want[v.obj[i].key]
			if utf8.ValidString(v.obj[i].key) && (!ok || !agrees(&v.obj[i].val, w)) {
				return false
			}
		}
		return len(v.obj) >= len(want) // keys that differ in a surrogate become one
	}
	return false
}

// FuzzParse compares the parser with encoding/json on everything that both
// know, and its two ways of reading a document with each other.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"traceEvents":[{"ph":"X","cat":"kernel","ts":1,"dur":2.5,"args":{"stream":7}}]}`,
		`[1,-0,1e5,NaN,-Infinity,"\ud800\n",null,true,{"a":{}}]`, `{"a":1,"a":[2]}`, `"ä\u00e4"`, ` `, `{"":-}`, "[\"\x01\"]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if !utf8.Valid(doc) {
			return
		}
		v, err := parse(doc)
		_, errTop := topLevel(doc)
		if (err == nil) != (errTop == nil) || err != nil && err.Error() != errTop.Error() {
			t.Fatalf("%q: reading says %v, checking says %v", doc, err, errTop)
		}
		_ = v.str()
		_ = v.appendJSON(nil)
		valid := json.Valid(doc)
		switch {
		case err == nil && !valid:
			if !bytes.Contains(doc, []byte("NaN")) && !bytes.Contains(doc, []byte("Infinity")) {
				t.Fatalf("%q was accepted", doc)
			}
		case err != nil && valid:
			if !strings.Contains(err.Error(), "nest deeper") && !strings.Contains(err.Error(), "Exceeds the limit") {
				t.Fatalf("%q: %v", doc, err)
			}
		case err == nil:
			d := json.NewDecoder(bytes.NewReader(doc))
			d.UseNumber()
			var want any
			if err := d.Decode(&want); err != nil {
				t.Fatal(err)
			}
			if !agrees(&v, want) {
				t.Fatalf("%q: read as %s", doc, v.str())
			}
		}
		if back, err := parse(v.appendJSON(nil)); valid && err != nil || back.str() != v.str() {
			t.Fatalf("%q: written as %s", doc, v.appendJSON(nil))
		}
	})
}

// FuzzLoad reads arbitrary bytes as a file.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"traceEvents":[{"ph":"X","cat":"kernel","ts":"1","dur":2.5,"args":{"correlation":9e99}}],"deviceProperties":[{"id":1e30}]}`))
	f.Add([]byte(`{"traceEvents":[{"ph":"X","cat":"cuda_runtime","pid":1,"tid":"2","ts":1,"args":{"correlation":0.5}}],"host_name":[1]}`))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		doc, err := decode(bytes.NewReader(file))
		if err != nil {
			return
		}
		trace, err := Parse(doc)
		if err != nil {
			return
		}
		for i := range trace.GPU.Len() {
			if e := trace.GPU.At(i); e.EndNS < e.StartNS {
				t.Fatalf("event %d ends before it starts", i)
			}
		}
	})
}
