package lake

import "testing"

func TestRunSlug(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "run",
		"llama-7b":           "llama-7b",
		"Llama 7B (bf16)":    "llama-7b-bf16",
		"20260101":           "run-20260101",
		"2026-01-01":         "run-2026-01-01",
		"epoch":              "run-epoch",
		"True":               "run-true",
		"../../etc/passwd":   "etc-passwd",
		"a%2Fb":              "a-2fb",
		"_x":                 "x",
		"v1.0_rc":            "v1.0_rc",
		"  spaced   out  ":   "spaced-out",
		"run=3/rank=0":       "run-3-rank-0",
		"job\x00\n":          "job",
		"名前":                 "run-" + digestOf("名前")[:8],
		"größe":              "gr-e-" + digestOf("größe")[:8],
		"con":                "con",
		"trailing-":          "trailing-",
		"Trailing dot here.": "trailing-dot-here",
	} {
		if got := RunSlug(text); got != want {
			t.Errorf("RunSlug(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzRunSlug(f *testing.F) {
	for _, s := range []string{"", "a", "A b", "0", "é", "infinity", "run=1", "-.-", "..", string(make([]byte, 300))} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slug := RunSlug(text)
		if !ValidRun(slug) {
			t.Fatalf("RunSlug(%q) = %q is not valid", text, slug)
		}
		if again := RunSlug(slug); again != slug {
			t.Fatalf("RunSlug(%q) = %q, of that %q", text, slug, again)
		}
	})
}
