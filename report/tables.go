package report

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"tracelake/analyze/query"
	"tracelake/schema"
)

//go:embed sql/*.sql
var files embed.FS

// source is a table of the report: an analysis, or a file of sql/ that sums up
// the tables before it.
type source struct {
	name  string
	own   bool   // a file of sql/
	order string // which rows stay where there are more than limit; "" for the order of the analysis
	limit int    // 0 for Options.Top
	aside bool   // other tables read it, the report does not show it
	paths bool   // asked for the iterations of paths.sql only
}

// table is where the rows of a source are kept.
func (s source) table() string { return "report_" + strings.ReplaceAll(s.name, "-", "_") }

// sources are read in this order: own ones see what stands before them as
// report_NAME.
var sources = []source{
	{name: "trust", order: "list_position(['poor', 'fair', 'good'], verdict), run, rank, trace_id", limit: maxRows},
	{name: "summary", limit: maxRows},
	{name: "devices", limit: maxRows},
	{name: "idle", aside: true},
	{name: "iterations", order: "slowdown DESC NULLS LAST, wall_ms DESC, run, rank, trace_id, start_ms", limit: maxSlowest},
	{name: "stragglers", limit: maxRows},
	{name: "kernels"},
	{name: "ops"},
	{name: "roofline"},
	{name: "launches", limit: maxRows},
	{name: "sync", order: "blocked_ms DESC, run, rank, trace_id, api, op", limit: maxSlowest},
	{name: "copies", order: `total_us DESC, run, rank, trace_id, process, device, kind, copy_kind, "from", "to"`, limit: maxRows},
	{name: "collectives", order: `mean_us * count DESC, run, collective, "group", bytes`, limit: maxRows},
	{name: "memory", limit: maxRows},
	{name: "steps", limit: maxRows},
	{name: "paths", own: true, limit: maxRows},
	{name: "critical-path", paths: true, order: "path_ms DESC, run, rank, trace_id, total_ms DESC, what, name", limit: maxRows},
	{name: "path_parts", own: true, limit: maxRows},
	{name: "inputs", own: true, limit: maxRows},
	{name: "totals", own: true, limit: 1},
	{name: "findings", own: true, limit: maxRows},
	{name: "diagnostics", own: true, limit: maxRows},
	{name: "runs", own: true, limit: maxRows},
	{name: "ranks", own: true, limit: maxRows},
	{name: "classes", own: true, limit: maxRows},
	{name: "waits", own: true, limit: maxRows},
	{name: "series", own: true, limit: maxSeries * maxPoints},
}

// Table is a table as the page shows it.
type Table struct {
	Title   string
	Answers string
	Needs   string // what a trace must have for rows; "" where any GPU work will do
	Columns []query.ColumnDoc
	Rows    [][]any
	Total   int64 // rows before the limit
}

// column returns the values of a column of the first row.
func (t *Table) first(column string) any {
	for i, c := range t.Columns {
		if c.Name == column && len(t.Rows) > 0 {
			return t.Rows[0][i]
		}
	}
	return nil
}

// analysis returns the header and the text of a source.
func (s source) analysis() (query.Analysis, error) {
	if !s.own {
		a, ok := query.Lookup(s.name)
		if !ok {
			return a, fmt.Errorf("BUG: no analysis %s", s.name)
		}
		return a, nil
	}
	return ownSQL(s.name)
}

func ownSQL(name string) (query.Analysis, error) {
	text, err := files.ReadFile(path.Join("sql", name+".sql"))
	if err != nil {
		return query.Analysis{}, err
	}
	return query.Parse(name, string(text))
}

// read runs a source, keeps its rows as report_NAME for the ones behind it, and
// returns those that the report shows.
func (s source) read(ctx context.Context, db *query.DB, top int) (*Table, error) {
	a, err := s.analysis()
	if err != nil {
		return nil, err
	}
	if s.paths {
		err = s.readPaths(ctx, db)
	} else {
		err = db.Exec(ctx, create(s.table(), trimmed(a.SQL)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	if s.aside {
		return nil, nil
	}
	order, limit := s.order, s.limit
	if order == "" {
		order = "rowid"
	}
	if limit == 0 {
		limit = top
	}
	t := &Table{Title: a.Title, Answers: a.Answers, Needs: a.Needs}
	rows, err := collect(ctx, db, fmt.Sprintf("SELECT * FROM %s ORDER BY %s LIMIT %d", s.table(), order, limit), func(columns []query.Column) {
		t.Columns = document(columns, a)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	t.Rows = rows
	counted, err := collect(ctx, db, "SELECT count(*) FROM "+s.table(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	t.Total, _ = counted[0][0].(int64)
	return t, nil
}

// trimmed is a statement without its end.
func trimmed(sql string) string { return strings.TrimSuffix(strings.TrimSpace(sql), ";") }

// create keeps the rows of a statement. The line break ends a comment in its
// last line.
func create(table, sql string) string {
	return "CREATE OR REPLACE TEMP TABLE " + table + " AS (\n" + sql + "\n)"
}

// document finds what the header of an analysis says about each column.
func document(columns []query.Column, a query.Analysis) []query.ColumnDoc {
	out := make([]query.ColumnDoc, len(columns))
	for i, c := range columns {
		out[i].Name = c.Name
		for _, d := range a.Columns {
			if d.Name == c.Name {
				out[i].Doc = d.Doc
			}
		}
	}
	return out
}

// advise adds to each diagnostic what its user can do.
func advise(t *Table) {
	at := -1
	for i, c := range t.Columns {
		if c.Name == "code" {
			at = i
		}
	}
	t.Columns = append(t.Columns, query.ColumnDoc{Name: "what to do", Doc: "what can be done about it"})
	for i, r := range t.Rows {
		code, _ := r[at].(string)
		info, _ := schema.Describe(schema.Code(code))
		t.Rows[i] = append(r, info.Do)
	}
}

// collect returns all rows of a query that has a limit.
func collect(ctx context.Context, db *query.DB, script string, columns func([]query.Column)) (out [][]any, err error) {
	rows, err := db.Query(ctx, script)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if columns != nil {
		columns(rows.Columns())
	}
	for {
		v := make([]any, len(rows.Columns()))
		err := rows.Next(v)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range v {
			if s, ok := v[i].(string); ok {
				v[i] = shorten(s, maxText)
			}
		}
		out = append(out, v)
	}
}

// shorten cuts a text and marks the cut.
func shorten(s string, limit int) string {
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + "…"
		}
	}
	return s
}
