package kineto

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRankInName reads ranks from names: a rank that is found is written there.
func FuzzRankInName(f *testing.F) {
	for _, s := range []string{"rank3.json", "a_rank-12_b.json", "r3-x.json", "worker-TP-1-DP-0-PP-0.json", "rank99999999999999999999", "TP-0-EP-3", "dir/rank1/x.json", ""} {
		f.Add(s)
	}
	digits := regexp.MustCompile(`[0-9]+`)
	f.Fuzz(func(t *testing.T, name string) {
		r := RankInName(name)
		if !r.OK {
			return
		}
		for _, d := range digits.FindAllString(name, -1) {
			if n, err := strconv.ParseInt(d, 10, 64); err == nil && n == r.V {
				return
			}
		}
		t.Fatalf("%q: rank %d", name, r.V)
	})
}

// FuzzAppendQuoted writes texts as JSON.
func FuzzAppendQuoted(f *testing.F) {
	f.Add("a\"\\\n\t\r\x00\u2028é")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			t.Skip()
		}
		var back string
		if err := json.Unmarshal(AppendQuoted(nil, s), &back); err != nil || back != s {
			t.Fatalf("%q became %q, %v", s, back, err)
		}
	})
}

// TestDigestAlone: the digest is that of a whole reading, and of the text
// whatever its form.
func TestDigestAlone(t *testing.T) {
	for name, b := range inputs(t) {
		got, err := Digest(bytes.NewReader(b), Options{Workers: 2})
		all := readAll(t, from(b), Options{Workers: 1})
		if all.err != "" {
			continue // rejected: there is no result to compare with
		}
		if err != nil || !strings.Contains(all.other, got) {
			t.Errorf("%s: %s, %v, want that of %s", name, got, err, all.other)
		}
	}
}
