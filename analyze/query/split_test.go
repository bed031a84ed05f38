package query

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for script, want := range map[string][]string{
		"":                          nil,
		" ; ;; -- a;b\n /* c;d */":  nil,
		"a":                         {"a"},
		"a;b;":                      {"a", "b"},
		"select ';''' ; b":          {"select ';''' ", " b"},
		`select "x;y"; b`:           {`select "x;y"`, " b"},
		"select $$;$$; b":           {"select $$;$$", " b"},
		"select $t$;$$;$t$; b":      {"select $t$;$$;$t$", " b"},
		"select $1; b":              {"select $1", " b"},
		`select e'\';'; b`:          {`select e'\';'`, " b"},
		`select '\'; b`:             {`select '\'`, " b"},
		"select type';'; b":         {"select type';'", " b"},
		"-- c'\na; /* ' */ b":       {"-- c'\na", " /* ' */ b"},
		"select 'open; b":           {"select 'open; b"},
		"select a$b;c$b":            {"select a$b", "c$b"},
		"select 1 -- last; comment": {"select 1 -- last; comment"},
	} {
		if got := split(script); !slices.Equal(got, want) {
			t.Errorf("split(%q) = %q, want %q", script, got, want)
		}
	}
}

func TestStatements(t *testing.T) {
	for script, want := range map[string][]string{ // the rest comes last
		"":                      {""},
		"a;b;":                  {"a", "b", ""},
		"a; -- b;\n":            {"a", " -- b;\n"},
		"select 'x;\n":          {"select 'x;\n"},
		"/* a; */ b;\nselect 1": {"/* a; */ b", "\nselect 1"},
	} {
		ended, rest := Statements(script)
		if got := append(ended, rest); !slices.Equal(got, want) {
			t.Errorf("Statements(%q) = %q, want %q", script, got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"a;b", "'", "$$", "$a$;$a$", "e'\\", "--", "/*", "\"", "é;'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		rest := script
		for _, part := range split(script) {
			_, after, ok := strings.Cut(rest, part)
			if !ok || part == "" {
				t.Fatalf("%q is no part of %q", part, script)
			}
			rest = after
		}
	})
}
