package schema

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDevicePeaks reads a table of devices. Its texts become literals of SQL: no
// quote of a field ends one.
func FuzzDevicePeaks(f *testing.F) {
	for _, s := range []string{
		"gpu,fp32\nA100,19.5\n", "gpu\nx'); DROP TABLE t; --\n", "gpu,source\n\"a\nb\",\"c''d\"\n", "\ufeffgpu\n", "gpu,gb_per_s\nx,nan\n", "gpu,gpu\nx,y\n", "", "x\n", "gpu,fp8\nx,1e400\n",
	} {
		f.Add(s)
	}
	const start, end = "CREATE OR REPLACE VIEW device_peaks AS\nSELECT * FROM (VALUES\n", ") AS peaks(position, gpu, gb_per_s, fp64, fp32, tf32, fp16, bf16, fp8, int8, source);\n"
	rows := regexp.MustCompile(`^(  \([0-9]+(, (|[0-9.]+::DOUBLE|NULL::DOUBLE))*\),?\n)*$`)
	f.Fuzz(func(t *testing.T, text string) {
		sql, err := DevicePeaksSQL(strings.NewReader(text))
		if err != nil {
			return
		}
		// Nothing but numbers stands between the literals of text.
		rest, hasStart := strings.CutPrefix(outside(sql), start)
		rest, hasEnd := strings.CutSuffix(rest, end)
		if !hasStart || !hasEnd || !rows.MatchString(rest+"\n") && !rows.MatchString(rest) {
			t.Fatalf("outside of literals: %s", rest)
		}
	})
}

// outside returns SQL without its literals of text.
func outside(sql string) string {
	var b strings.Builder
	for i, part := range strings.Split(sql, "'") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

// FuzzUserTable declares tables of users: what is accepted has names that need
// no quotes.
func FuzzUserTable(f *testing.F) {
	f.Add("user_x", "a", "b")
	f.Add("x", "a b", "trace_id")
	f.Add("user_\"", "", "a")
	f.Fuzz(func(t *testing.T, name, first, second string) {
		table, problem := UserTable(name, []Column{{Name: first}, {Name: second, Type: String}})
		if problem != "" {
			if !utf8.ValidString(ValidText(problem)) {
				t.Fatalf("%q", problem)
			}
			return
		}
		if !IsUserTable(table.Name) {
			t.Fatalf("%q", table.Name)
		}
		seen := map[string]bool{}
		for _, c := range table.Columns {
			if strings.ContainsAny(c.Name, "\"'\x00\n;") || c.Name == "" || seen[strings.ToLower(c.Name)] {
				t.Fatalf("column %q of %+v", c.Name, table.Columns)
			}
			seen[strings.ToLower(c.Name)] = true
		}
		if sql := UserViewSQL("/lake", table.Name); strings.Count(sql, ";") > 1 || strings.ContainsAny(table.Name, "\"';") {
			t.Fatal(sql)
		}
	})
}
