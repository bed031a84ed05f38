//go:build cgo && !noduckdb

package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tracelake/schema"
	"tracelake/schema/lake"
)

// emptyViews gives every table a view without rows.
func emptyViews() string {
	var names []string
	for _, t := range schema.Tables {
		names = append(names, t.Name)
	}
	return schema.ViewsSQL("", names...)
}

// declaration makes a view or macro.
type declaration struct{ name, sql string }

// declarations returns the views of all tables, over the given files where there
// are any and without rows elsewhere, so that every query works on every
// dataset, and what analyses share; in order, with the settings that these want.
func declarations(files map[string][]string, mixed bool) (settings []string, out []declaration) {
	for _, sql := range split(emptyViews()) {
		name := created.FindStringSubmatch(sql)
		if name == nil {
			settings = append(settings, sql)
			continue
		}
		if t := schema.TableByName(name[1]); t != nil && len(files[t.Name]) > 0 {
			sql = viewSQL(t, files[t.Name], mixed)
		}
		out = append(out, declaration{name[1], sql})
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if schema.IsUserTable(name) {
			out = append(out, declaration{name, viewOf(name, files[name], true)})
		}
	}
	return settings, out
}

// viewSQL declares the view of one table over the given files. Unlike the
// views of schema.ViewsSQL it shows what is committed, whatever a killed
// writer left.
func viewSQL(t *schema.Table, files []string, mixedVersions bool) string {
	var b strings.Builder
	b.WriteString("SELECT * FROM read_parquet([")
	for i, f := range files {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(f))
	}
	if lake.Partitioned(t) {
		b.WriteString("], hive_partitioning = true, hive_types = {'run': VARCHAR, 'rank': BIGINT}")
	} else {
		b.WriteString("], hive_partitioning = false")
	}
	if mixedVersions {
		// Reads every footer first, so only where files can differ.
		b.WriteString(", union_by_name = true")
	}
	b.WriteString(")")
	return schema.ViewSQL(t, b.String())
}

// viewOf is viewSQL of the table with a name, which may be one of users.
func viewOf(table string, files []string, mixedVersions bool) string {
	if t := schema.TableByName(table); t != nil {
		return viewSQL(t, files, mixedVersions)
	}
	return viewSQL(&schema.Table{Name: table}, files, true)
}

// quote makes a SQL text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// parts returns the committed files of every table, and whether they were
// written with different schema versions.
func parts(l *lake.Lake, commits []lake.Commit) (files map[string][]string, mixed bool, err error) {
	seen := map[string]bool{} // files of several traces
	files = map[string][]string{}
	for _, c := range commits {
		mixed = mixed || c.SchemaVersion != schema.Version
		for _, f := range c.Files {
			if strings.HasSuffix(f.Path, ".arrow") {
				return nil, false, fmt.Errorf("%s holds Arrow files, which DuckDB cannot open; convert to Parquet to query it", l.Root())
			}
			if seen[f.Path] {
				continue
			}
			seen[f.Path] = true
			files[f.Table] = append(files[f.Table], l.Abs(f.Path))
		}
	}
	return files, mixed, nil
}
