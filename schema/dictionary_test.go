package schema_test

import (
	"os"
	"strings"
	"testing"

	"tracelake/schema"
)

// TestDocs fails when the declarations have changed since the documentation
// was generated.
func TestDocs(t *testing.T) {
	for path, want := range map[string]string{
		"../docs/data-dictionary.md": schema.DictionaryMarkdown(),
		"../docs/diagnostics.md":     schema.DiagnosticsMarkdown(),
	} {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		} else if string(got) != want {
			t.Errorf("%s does not match the declarations: run go generate ./schema", path)
		}
	}
}

// TestDeclarations keeps the promises that the dictionary makes of all tables.
func TestDeclarations(t *testing.T) {
	for _, table := range schema.Tables {
		if c := table.Columns[0]; c.Name != schema.TraceIDColumn || c.Type != schema.String || c.Nullable {
			t.Errorf("%s starts with %+v", table.Name, c)
		}
		if table.Row == "" || table.Order == "" || table.Doc == "" {
			t.Errorf("%s lacks documentation", table.Name)
		}
		seen := map[string]bool{}
		for _, c := range table.Columns {
			if seen[c.Name] || c.Doc == "" || c.Since < 1 || c.Since > schema.Version || strings.HasSuffix(c.Doc, ".") {
				t.Errorf("%s: repeated, undocumented or odd column %+v", table.Name, c)
			}
			if strings.HasSuffix(c.Name, "_ns") && c.Unit != "ns" {
				t.Errorf("%s.%s has the unit %q", table.Name, c.Name, c.Unit)
			}
			seen[c.Name] = true
		}
	}
}
