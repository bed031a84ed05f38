package query

import (
	"fmt"
	"strings"
)

// Markdown documents the catalogue.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Analyses

Generated from the headers of analyze/query/sql/*.sql. "tracelake analyze NAME LAKE" runs one; any DuckDB that has read the
dataset's _tracelake/views.sql runs the file as it is. What is selected and parameters are variables there:
` + "`SET VARIABLE run = 'train'`" + `, and rank, trace, device, iteration, from_ns and to_ns (since the start of each trace), as
--run, --rank, --trace, --device, --iteration, --from and --to on the command line. An analysis says which of them it takes;
the others are refused on the command line and have no effect in SQL. Events whose recorded times cannot be
trusted (time_flag) are left out of all times; "trust" counts them.

`)
	for _, a := range Analyses() {
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", a.Name, a.Name, a.Title)
	}
	for _, a := range Analyses() {
		fmt.Fprintf(&b, "\n## %s\n\n%s. %s\n", a.Name, a.Title, a.Answers)
		if a.Needs != "" {
			fmt.Fprintf(&b, "\nNeeds %s.\n", a.Needs)
		}
		fmt.Fprintf(&b, "\n%s\n", a.SelectedBy())
		if len(a.Params) > 0 {
			b.WriteString("\n| parameter | meaning |\n|---|---|\n")
			for _, p := range a.Params {
				fmt.Fprintf(&b, "| `%s` | %s |\n", p.Name, strings.ReplaceAll(p.Doc, "|", `\|`))
			}
		}
		b.WriteString("\n| column | meaning and unit |\n|---|---|\n")
		for _, c := range a.Columns {
			fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, strings.ReplaceAll(c.Doc, "|", `\|`))
		}
	}
	return b.String()
}
