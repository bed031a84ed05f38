package schema

import (
	"fmt"
	"strings"
)

//go:generate go run ./internal/gen ../docs

const generated = "<!-- Generated from the declarations in schema/ by `go generate ./schema`. Do not edit. -->\n\n"

// DictionaryMarkdown returns docs/data-dictionary.md: every table and column.
func DictionaryMarkdown() string {
	var b strings.Builder
	b.WriteString("# Data dictionary\n\n" + generated)
	fmt.Fprintf(&b, `Schema version %d.

- Integers are 64-bit and signed. Times are integer nanoseconds; the clock is in `+"`traces.clock`"+`.
- Every file holds every column of its schema version, also where no row has a value.
- Every table starts with `+"`%s`"+`. Tables other than `+"`traces`"+` have two more columns, `+"`run`"+` (text) and `+"`rank`"+` (integer, -1 where unknown), which come from the path of a file: `+"`<table>/run=<run>/rank=<rank>/`"+`.
- *null* says whether a row may lack the value. *since* is the schema version that introduced the column.

| table | one row is |
|---|---|
`, Version, TraceIDColumn)
	for _, t := range Tables {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", t.Name, t.Name, cell(t.Row))
	}
	for _, t := range Tables {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\nOne row is %s. Order of rows in a file: %s.\n\n", t.Name, t.Doc, t.Row, t.Order)
		b.WriteString("| column | type | null | unit | since | meaning |\n|---|---|---|---|---|---|\n")
		for i := range t.Columns {
			c := &t.Columns[i]
			null := ""
			if c.Nullable {
				null = "null"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %d | %s |\n", c.Name, code(c.Type.String()), null, cell(c.Unit), c.Since, cell(c.Doc))
		}
	}
	return b.String()
}

// DiagnosticsMarkdown returns docs/diagnostics.md: every diagnostic code.
func DiagnosticsMarkdown() string {
	var b strings.Builder
	b.WriteString("# Diagnostics\n\n" + generated)
	b.WriteString(`What an import notices is counted by code, printed once per input, and kept in the table ` + "`diagnostics`" + `. The severity decides the outcome of the input:

| severity | what it says | outcome |
|---|---|---|
| info | worth knowing, nothing is wrong | ok |
| notice | unusual input that was read as it stands | ok |
| repair | the text was mended; nothing is missing | repaired |
| data_loss | something is missing or was set aside | partial |
| error | the input was not imported | rejected |

| code | severity | what it means | what to do |
|---|---|---|---|
`)
	for _, c := range Codes {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Code, c.Severity, cell(c.Doc), cell(c.Do))
	}
	return b.String()
}

// code sets a type in code type where Markdown would take it for HTML.
func code(s string) string {
	if strings.Contains(s, "<") {
		return "`" + s + "`"
	}
	return s
}

// cell escapes what would end a cell of a table or start an HTML tag.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(s)
}
