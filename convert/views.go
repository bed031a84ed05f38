package convert

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

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
	root, err := filepath.Abs(c.lake.Root())
	if err != nil {
		return err
	}
	sql, err := ViewsSQL(c.lake, root)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, lake.MetaDir)
	f, err := os.CreateTemp(dir, ".tmp-views-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	if _, err := f.WriteString(sql); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, "views.sql"))
}
