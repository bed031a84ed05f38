package schema

import "testing"

func TestValidText(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain": "plain", "ü\ufffd": "ü\ufffd", "a\xffb": `a\xffb`, "ü\xc3": `ü\xc3`, "\ufffd\x80": "\ufffd" + `\x80`,
	} {
		if got := ValidText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
