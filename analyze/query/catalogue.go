package query

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed sql/*.sql
var files embed.FS

// Analysis is a question with its answer in SQL.
type Analysis struct {
	Name    string // name of the file without its suffix
	Title   string
	Answers string      // the question, in a sentence
	Needs   string      // what a trace must have for rows; empty where any GPU work will do
	Selects []string    // names of the Selections that it heeds; empty for SQL that is no analysis of its own
	Apart   bool        // no row needs more than one trace, and those of a trace follow each other, by run, rank and trace_id
	Params  []ColumnDoc // variables that it understands besides those of the shared views
	Columns []ColumnDoc
	SQL     string // the whole file
}

// ColumnDoc documents a column of the answer.
type ColumnDoc struct {
	Name string
	Doc  string // meaning and unit
}

// Analyses returns the catalogue, ordered by name.
func Analyses() []Analysis {
	entries, err := files.ReadDir("sql")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var out []Analysis
	for _, e := range entries {
		text, err := files.ReadFile(path.Join("sql", e.Name()))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		a, err := Parse(strings.TrimSuffix(e.Name(), ".sql"), string(text))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		out = append(out, a)
	}
	return out
}

// Lookup returns the analysis with the given name.
func Lookup(name string) (Analysis, bool) {
	for _, a := range Analyses() {
		if a.Name == name {
			return a, true
		}
	}
	return Analysis{}, false
}

// Parse reads the header of an SQL file. Indented lines go on with the text
// above them:
//
//	-- title: Busiest kernels
//	-- what it answers: Which kernels take most of the GPU time?
//	--   Kernels without a duration are left out.
//	-- selects: run, rank, trace, device
//	-- needs: kernels
//	-- parameters:
//	--   top  rows; default 25
//	-- columns and units:
//	--   name      kernel
//	--   total_ns  time on the GPU, ns
//	--             and the next line of the same text
func Parse(name, text string) (Analysis, error) {
	a := Analysis{Name: name, SQL: text}
	var at *string        // where an indented line goes on; nil in a list
	var list *[]ColumnDoc // of parameters or columns
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "--")
		if !ok {
			break
		}
		trimmed := strings.TrimSpace(line)
		key, value, _ := strings.Cut(trimmed, ":")
		value = strings.TrimSpace(value)
		switch {
		case key == "title":
			a.Title, at = value, &a.Title
		case key == "what it answers":
			a.Answers, at = value, &a.Answers
		case key == "needs":
			a.Needs, at = value, &a.Needs
		case key == "selects":
			a.Selects, at = strings.Split(value, ", "), nil
			for _, name := range a.Selects {
				if !slices.ContainsFunc(Selections, func(s Selection) bool { return s.Name == name }) {
					return a, fmt.Errorf("query: analysis %s selects by %q, which is none of %v", a.Name, name, Selections)
				}
			}
		case key == "traces" && value == "apart":
			a.Apart, at = true, nil
		case key == "parameters":
			at, list = nil, &a.Params
		case key == "columns and units":
			at, list = nil, &a.Columns
		case at != nil:
			*at += " " + trimmed
		case list == nil:
			return a, fmt.Errorf("query: analysis %s: a line outside of any part: %s", name, line)
		case strings.HasPrefix(line, "      ") && len(*list) > 0:
			(*list)[len(*list)-1].Doc += " " + trimmed
		default:
			column, doc, _ := strings.Cut(trimmed, " ")
			*list = append(*list, ColumnDoc{column, strings.TrimSpace(doc)})
		}
	}
	if a.Title == "" || a.Answers == "" || len(a.Columns) == 0 {
		return a, fmt.Errorf("query: analysis %s has no complete header", name)
	}
	return a, nil
}
