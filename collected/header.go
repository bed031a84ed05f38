package collected

import (
	"bufio"
	"encoding/json"
	"fmt"

	"tracelake/internal/regular"
	"tracelake/schema"
)

// Header is the first line of a table file.
type Header struct {
	Table         string   `json:"table"`
	Columns       []Column `json:"columns"`
	Tracer        string   `json:"tracer"`
	TracerVersion string   `json:"tracer_version"`
}

// Column is a column as a tracer declares it.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Unit string `json:"unit"`
	Doc  string `json:"doc"`
}

var typeNames = map[string]schema.Type{
	"int64": schema.Int64, "float64": schema.Float64, "string": schema.String, "bool": schema.Bool,
}

// parseHeader reads the first line of a table file.
func parseHeader(line []byte) (*Header, error) {
	var h Header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("the first line is no header of a table: %w", err)
	}
	switch {
	case h.Table == "":
		return nil, fmt.Errorf(`the first line is no header of a table: it has no "table"`)
	case len(h.Columns) == 0:
		return nil, fmt.Errorf("the header of table %s declares no columns", h.Table)
	case len(h.Columns) > maxColumns:
		return nil, fmt.Errorf("the header of table %s declares %d columns; %d are allowed", h.Table, len(h.Columns), maxColumns)
	}
	return &h, nil
}

// declaration returns the table that a header stands for. Columns that a known
// table has and the header lacks are null; extra are columns that it does not
// have, whose values have no place.
func (h *Header) declaration() (t *schema.Table, missing, extra []string, err error) {
	declared := make([]schema.Column, len(h.Columns))
	types := map[string]schema.Type{}
	for i, c := range h.Columns {
		typ, ok := typeNames[c.Type]
		if !ok {
			return nil, nil, nil, fmt.Errorf("column %.60q of table %.60q has type %.60q; int64, float64, string and bool are known", c.Name, h.Table, c.Type)
		}
		if _, twice := types[c.Name]; twice {
			return nil, nil, nil, fmt.Errorf("table %.60q declares column %.60q twice", h.Table, c.Name)
		}
		types[c.Name] = typ
		declared[i] = schema.Column{Name: c.Name, Type: typ, Nullable: true, Unit: c.Unit, Since: 1, Doc: c.Doc}
	}
	known := schema.CollectedByName(h.Table)
	if known == nil {
		user, problem := schema.UserTable(h.Table, declared)
		if problem != "" {
			return nil, nil, nil, fmt.Errorf("table %.60q: %s", h.Table, problem)
		}
		return &user, nil, nil, nil
	}
	for _, c := range known.Columns[schema.CollectedKeys:] {
		typ, ok := types[c.Name]
		switch {
		case !ok:
			missing = append(missing, c.Name)
		case typ != c.Type:
			return nil, nil, nil, fmt.Errorf("column %s of table %s is declared %s and not %s", c.Name, h.Table, typ, c.Type)
		}
	}
	for _, c := range h.Columns {
		if at := known.Col(c.Name); at < schema.CollectedKeys {
			extra = append(extra, c.Name)
		}
	}
	return known, missing, extra, nil
}

// IsTable reports whether a file starts like a table: with an object that
// names a table and declares columns.
func IsTable(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	l := lines{in: bufio.NewReader(f)}
	line, ok := l.next(maxHeader)
	if !ok || l.long {
		return false
	}
	_, err = parseHeader(line)
	return err == nil
}
