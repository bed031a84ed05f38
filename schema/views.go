package schema

import (
	"fmt"
	"slices"
	"strings"
)

// ViewsSQL returns SQL that gives DuckDB one view per table of the lake at
// root. DuckDB cannot make a view over no files: the tables named in absent
// get an empty view with the declared columns. Tables of users are not among
// them; UserViewSQL makes their views.
func ViewsSQL(root string, absent ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- Views over the tables of schema version %d. Written by tracelake.\n", Version)
	root = strings.TrimRight(root, "/")
	for _, t := range Tables {
		rows := "SELECT " + strings.Join(nullColumns(t), ", ") + "\n  WHERE false"
		if !slices.Contains(absent, t.Name) {
			rows = fmt.Sprintf("SELECT * FROM read_parquet(%s, union_by_name = true, %s)", glob(root, t.Name, t.partitioned()), hive(t.partitioned()))
		}
		b.WriteString(ViewSQL(t, rows) + ";\n")
	}
	peaks, err := DevicePeaksSQL(nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	b.WriteString("\n" + SharedViewsSQL + "\n-- What GPUs can do at most; docs/sql.md explains the columns.\n" + peaks)
	return b.String()
}

// ViewSQL returns the statement that makes the view of a table, given the
// statement that reads its files. What concerns a run as a whole is part of
// diagnostics and of no file: it is computed from traces.
func ViewSQL(t *Table, rows string) string {
	if t == &TableDiagnostics {
		rows += runNotices
	}
	return fmt.Sprintf("CREATE OR REPLACE VIEW %s AS\n  %s", t.Name, rows)
}

// UserViewSQL returns the view of a table of users. Files of several tracers
// may differ in their columns.
func UserViewSQL(root, name string) string {
	root = strings.TrimRight(root, "/")
	return fmt.Sprintf("CREATE OR REPLACE VIEW %s AS\n  SELECT * FROM read_parquet(%s, union_by_name = true, %s);\n", name, glob(root, name, true), hive(true))
}

// glob names the parts of a table and nothing that other programs keep in its
// directory, as Delta does in _delta_log.
func glob(root, table string, partitioned bool) string {
	dir := escapeGlob(root) + "/" + table
	if partitioned {
		dir += "/run=*/rank=*"
	}
	return sqlText(dir + "/*.parquet")
}

func hive(partitioned bool) string {
	if partitioned {
		return "hive_partitioning = true, hive_types = {'run': VARCHAR, 'rank': BIGINT}"
	}
	return "hive_partitioning = false"
}

// partitioned reports whether run and rank come from the path and not from
// columns.
func (t *Table) partitioned() bool { return t.Col("run") < 0 && t.Col("rank") < 0 }

func nullColumns(t *Table) []string {
	var out []string
	for i := range t.Columns {
		out = append(out, fmt.Sprintf("NULL::%s AS %q", duckType(t.Columns[i].Type), t.Columns[i].Name))
	}
	if t.partitioned() {
		out = append(out, "NULL::VARCHAR AS run", "NULL::BIGINT AS rank")
	}
	return out
}

func duckType(t Type) string {
	switch t {
	case Float64:
		return "DOUBLE"
	case String:
		return "VARCHAR"
	case Bool:
		return "BOOLEAN"
	case Intervals:
		return "STRUCT(offset_ns BIGINT, dur_ns BIGINT)[]"
	}
	return "BIGINT"
}

// sqlText returns s as an SQL literal.
func sqlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// escapeGlob makes the characters that a glob pattern gives a meaning stand
// for themselves.
func escapeGlob(s string) string {
	return strings.NewReplacer("[", "[[]", "*", "[*]", "?", "[?]").Replace(s)
}
