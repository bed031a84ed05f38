package convert

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tracelake/schema"
	"tracelake/schema/columnar"
	"tracelake/schema/lake"
)

// ViewsSQL returns SQL that declares the tables of a dataset as views for a
// DuckDB of the user's own, which finds the dataset at root. Tables without
// files get empty views.
func ViewsSQL(l *lake.Lake, root string) (string, error) {
	commits, err := l.Commits()
	if err != nil {
		return "", err
	}
	present := map[string]bool{}
	for _, x := range commits {
		for _, f := range x.Files {
			present[f.Table] = true
		}
	}
	var absent []string
	for _, t := range schema.Tables {
		if !present[t.Name] {
			absent = append(absent, t.Name)
		}
	}
	sql := schema.ViewsSQL(root, absent...)
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if schema.IsUserTable(name) {
			sql += schema.UserViewSQL(root, name)
		}
	}
	return sql, nil
}

// writeViews writes _tracelake/views.sql.
func (c *importer) writeViews() error {
	if c.o.Format == columnar.Arrow {
		return nil
	}
	root, err := ViewsRoot(c.lake)
	if err != nil {
		return err
	}
	sql, err := ViewsSQL(c.lake, root)
	if err != nil {
		return err
	}
	return c.lake.WriteMeta("views.sql", []byte(sql))
}

// ViewsRoot returns how a DuckDB names where a dataset is.
func ViewsRoot(l *lake.Lake) (string, error) {
	if l.Remote() {
		if rest, ok := strings.CutPrefix(l.Root(), "azblob://"); ok {
			return "az://" + rest, nil
		}
		return l.Root(), nil
	}
	return filepath.Abs(l.Root())
}
