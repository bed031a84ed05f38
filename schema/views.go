package schema

import (
	"fmt"
	"slices"
	"strings"
)

// ViewsSQL returns SQL that gives DuckDB one view per table of the lake at
// root. DuckDB cannot make a view over no files: the tables named in absent
// get an empty view with the declared columns.
func ViewsSQL(root string, absent ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- Views over the tables of schema version %d. Written by tracelake.\n", Version)
	root = strings.TrimRight(root, "/")
	for _, t := range Tables {
		fmt.Fprintf(&b, "CREATE OR REPLACE VIEW %s AS\n  SELECT ", t.Name)
		if slices.Contains(absent, t.Name) {
			b.WriteString(strings.Join(nullColumns(t), ", ") + "\n  WHERE false;\n")
			continue
		}
		path := sqlText(escapeGlob(root) + "/" + t.Name + "/**/*.parquet")
		fmt.Fprintf(&b, "* FROM read_parquet(%s, union_by_name = true, ", path)
		if t.partitioned() {
			b.WriteString("hive_partitioning = true, hive_types = {'run': VARCHAR, 'rank': BIGINT});\n")
		} else {
			b.WriteString("hive_partitioning = false);\n")
		}
	}
	return b.String()
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
