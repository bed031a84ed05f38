package compat

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// script answers each document of a JSON array with its repr and with what int
// and float make of it, or with the message of the refusal.
const script = `
import json, sys
def attempt(f):
    try: return str(f())
    except (ValueError, TypeError, OverflowError): return ""
out = []
for doc in json.load(sys.stdin):
    try:
        v = json.loads(doc)
        out.append([repr(v), attempt(lambda: int(v)), attempt(lambda: repr(float(v)))])
    except ValueError as e:
        out.append([str(e)])
json.dump(out, sys.stdout)
`

// TestAgainstPython compares broken and whole documents with Python itself.
func TestAgainstPython(t *testing.T) {
	bin := os.Getenv("TRACELAKE_PYTHON")
	if bin == "" {
		bin, _ = filepath.Abs("../../.venv/bin/python")
	}
	// Python 3.13 words trailing commas differently.
	check := exec.Command(bin, "-c", "import sys; sys.exit(sys.version_info >= (3, 13))")
	if err := check.Run(); err != nil {
		t.Skipf("NOT COMPARED with Python's json: set TRACELAKE_PYTHON to a Python before 3.13, or make .venv in the root of the repository (%v)", err)
	}
	docs := mutations(4000)
	in, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "-c", script)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	// Read with our own parser, which keeps surrogates.
	want, err := parse(answer)
	if err != nil || len(want.list) != len(docs) {
		t.Fatalf("%d answers for %d documents, %v", len(want.list), len(docs), err)
	}
	for i, doc := range docs {
		w := want.list[i].list
		v, err := parse([]byte(doc))
		if err != nil {
			if len(w) != 1 || err.Error() != w[0].s {
				t.Errorf("%q: got %v, want %q", doc, err, w[0].s)
			}
			continue
		}
		if len(w) != 3 {
			t.Errorf("%q: accepted, want %q", doc, w[0].s)
			continue
		}
		n, f := "", ""
		if x, err := toInt(&v); err == nil {
			n = x.str()
		}
		if x, err := toFloat(&v); err == nil {
			f = floatRepr(x)
		}
		if r := string(v.appendRepr(nil)); r != w[0].s || n != w[1].s || f != w[2].s {
			t.Errorf("%q: got %q %q %q, want %q %q %q", doc, r, n, f, w[0].s, w[1].s, w[2].s)
		}
	}
}

// mutations returns documents made of pieces that are likely to matter.
func mutations(n int) (out []string) {
	r := rand.New(rand.NewPCG(7, 8))
	pieces := []string{
		`{`, `}`, `[`, `]`, `,`, `:`, `"`, `"a"`, `"a":`, `1`, `-`, `0`, `.5`, `e3`, `E-7`, `1e400`, `12345678901234567890`, `1.5`, `"1_0"`,
		`" 7 "`, `"-1.5e3"`, `"inf"`, `"nan"`, `true`, `false`, `null`, `NaN`, `Infinity`, `-Infinity`, ` `, "\n", "\t", "\x01", "ä", "\u200b",
		`\`, `\n`, `\u00e4`, `\ud83d\ude00`, `\ud800`, `\udc00`, `\u12`, `'`, `"it's"`, `"\"'"`, `[]`, `{}`, `[1,2]`, `{"a":1,"b":[{}]}`,
		"\u0663", "\u2028", `"😀"`, `"\ud800"`, `0.1`, `1e22`, `1e16`, `123456789.123`, `5e-324`, `0.00001`,
	}
	for len(out) < n {
		var doc []byte
		for range 1 + r.IntN(7) {
			doc = append(doc, pieces[r.IntN(len(pieces))]...)
		}
		switch r.IntN(4) {
		case 0:
			doc = append(append([]byte(`"`), doc...), '"')
		case 1:
			doc = append(append([]byte(`[`), doc...), ']')
		}
		if utf8.Valid(doc) {
			out = append(out, string(doc))
		}
	}
	return out
}
