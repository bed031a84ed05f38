// Package reportcopy copies exports of Nsight Systems without what is private in
// them, each into the form it has. It makes a new export out of listed tables and
// columns and never deletes from a copy: free pages keep what was deleted.
package reportcopy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"tracelake/internal/scratch"
	"tracelake/nsight"
	"tracelake/redact"
)

// errNoReport says that none of the tables of a report is there.
var errNoReport = errors.New("no export of Nsight Systems: none of its tables is there")

// Copy writes the copy of an export to a new file or directory, or, where out is
// "", only lets the policy count. Nothing is left where an error is returned,
// and what a killed process leaves has a hidden name, which no import finds.
func Copy(ctx context.Context, p *redact.Policy, in, out string) error {
	kind := nsight.Sniff(in)
	if err := free(kind, out); err != nil {
		return err
	}
	if out != "" {
		out = filepath.Clean(out)
	}
	err := copyTo(ctx, p, kind, in, out)
	if kind == nsight.SQLite {
		return plain(ctx, err)
	}
	return err
}

// free refuses an output that would have to be put in place of a directory, or
// a directory in place of anything.
func free(kind nsight.Kind, out string) error {
	st, err := os.Stat(out)
	if err == nil && (st.IsDir() || kind == nsight.ParquetDir || kind == nsight.ArrowDir) {
		return fmt.Errorf("%s is there already: remove it, or give the copy another name", out)
	}
	return nil
}

// source is an export that is copied.
type source interface {
	// names are its tables.
	names() ([]string, error)
	// columns are those of the listed columns that a table has.
	columns(table string, listed []column) ([]column, error)
	// scan gives the rows of a table, each value as nil, int64, float64 or string.
	scan(ctx context.Context, table string, cols []column, row func([]any) error) error
	close() error
}

// sink is a copy being written.
type sink interface {
	// create begins a table, after the last one, and returns what adds a row.
	create(table string, cols []column) (put func([]any) error, err error)
	// finish completes the copy.
	finish() error
	// abandon lets go of a copy that is not wanted any more.
	abandon()
}

func openSource(kind nsight.Kind, in string) (source, error) {
	if kind == nsight.SQLite {
		return openDatabase(in)
	}
	return openExported(in)
}

// newSink begins a copy of the form of the source.
func newSink(kind nsight.Kind, path string) (sink, error) {
	switch kind {
	case nsight.SQLite:
		return createDatabase(path)
	case nsight.ParquetDir:
		return createDir(path, ".parquet", newParquetTable)
	case nsight.ArrowDir:
		return createDir(path, ".arrow", newArrowTable)
	case nsight.ArrowStreams:
		return createFile(path, newArrowStream)
	case nsight.JSONLines:
		return createFile(path, newLines)
	}
	return nil, errNoReport
}

func copyTo(ctx context.Context, p *redact.Policy, kind nsight.Kind, in, out string) (err error) {
	src, err := openSource(kind, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.close()) }()
	c := &copier{p: p, src: src, strings: map[int64]redact.Class{}, seen: map[int64]bool{}}
	if out == "" {
		return c.copy(ctx)
	}
	file, err := scratch.NewOutput(out)
	if err != nil {
		return &WriteError{out, err}
	}
	defer file.Abandon() //nolint:errcheck // the next output in that directory tries again
	dst, err := newSink(kind, file.Path())
	if err != nil {
		return &WriteError{out, err}
	}
	c.dst = written{dst, out}
	if err := c.copy(ctx); err != nil {
		c.dst.abandon()
		return err
	}
	if err := c.dst.finish(); err != nil {
		return err
	}
	if err := file.Finish(); err != nil {
		return &WriteError{out, err}
	}
	return nil
}

type copier struct {
	p       *redact.Policy
	src     source
	dst     sink // nil where nothing is written
	strings map[int64]redact.Class
	seen    map[int64]bool // processes of copied rows
}

func (c *copier) copy(ctx context.Context) error {
	have, err := c.src.names()
	if err != nil {
		return err
	}
	some := false
	for i := range tables {
		for _, name := range have {
			if strings.EqualFold(name, tables[i].name) || variantOf(name, tables[i].name) {
				some = true
				if err := c.table(ctx, name, &tables[i]); err != nil {
					return fmt.Errorf("table %s: %w", tables[i].name, err)
				}
			}
		}
	}
	if !some {
		return errNoReport
	}
	return c.texts(ctx, have)
}

var suffix = regexp.MustCompile(`^_[Vv]\d{1,3}$`)

// variantOf tells whether a table is another with the number of a version.
func variantOf(name, table string) bool {
	rest, ok := strings.CutPrefix(name, table)
	return ok && suffix.MatchString(rest)
}

// create begins a table of the copy.
func (c *copier) create(name string, cols []column) (put func([]any) error, err error) {
	if c.dst == nil {
		return func([]any) error { return nil }, nil
	}
	return c.dst.create(name, cols)
}

// table copies a table.
func (c *copier) table(ctx context.Context, name string, t *table) error {
	cols, err := c.src.columns(name, t.columns)
	if err != nil || len(cols) == 0 {
		return err
	}
	put, err := c.create(name, cols)
	if err != nil {
		return err
	}
	row := make([]any, len(cols))
	return c.src.scan(ctx, name, cols, func(values []any) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !c.row(values, t, cols, row) {
			return nil
		}
		return put(row)
	})
}

// threadBits are the bits of a global ID that number the thread.
const threadBits = 1<<24 - 1

// row fills in what is copied of a row, and tells whether it is copied at all.
func (c *copier) row(values []any, t *table, cols []column, row []any) bool {
	for i, x := range cols {
		row[i] = c.value(values[i], x)
		if x.kind != global {
			continue
		}
		id, ok := values[i].(int64)
		process := id &^ threadBits
		switch {
		case ok && t.processes && !c.seen[process], !ok && t.processes:
			return false
		case ok:
			c.seen[process] = true
		}
	}
	return t.keys == nil || c.keyed(values, t, cols, row)
}

// keyed fills in a name and its value.
func (c *copier) keyed(values []any, t *table, cols []column, row []any) bool {
	name, value := -1, -1
	for i, x := range cols {
		switch x.name {
		case "name":
			name = i
		case "value":
			value = i
		}
	}
	if name < 0 || value < 0 {
		return false
	}
	key, ok := values[name].(string)
	if !ok {
		return false
	}
	class, ok := t.keys[key]
	if !ok {
		return false
	}
	said, ok := values[value].(string)
	if n, number := values[value].(int64); number {
		said, ok = strconv.FormatInt(n, 10), true
	}
	row[name], row[value] = key, nil
	if ok {
		row[value] = c.p.Text(class, said)
	}
	return true
}

// value returns what stands for a value in the copy. A value of another type
// than its column should have is left out.
func (c *copier) value(v any, x column) any {
	switch v := v.(type) {
	case string:
		if x.kind == text && x.class != 0 {
			return c.p.Text(x.class, v)
		}
	case float64:
		if x.kind == number || x.kind == real {
			return v
		}
	case int64:
		switch x.kind {
		case global:
			process, thread := v>>24&threadBits, v&threadBits
			return v&^(1<<48-1) | c.p.PID(process)<<24 | c.p.PID(thread)
		case pid:
			return c.p.PID(v)
		case stringID:
			c.strings[v] = max(c.strings[v], x.class)
			return v
		case number, real:
			return v
		case text:
		}
	}
	return nil
}

// texts copies those texts that copied rows refer to.
func (c *copier) texts(ctx context.Context, have []string) error {
	cols := []column{{name: "id"}, {name: "value", kind: text}}
	put, err := c.create("StringIds", cols)
	if err != nil {
		return err
	}
	for _, name := range have {
		if !strings.EqualFold(name, "StringIds") {
			continue
		}
		there, err := c.src.columns(name, cols)
		if err != nil || len(there) < len(cols) {
			return err
		}
		err = c.src.scan(ctx, name, cols, func(values []any) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			id, whole := values[0].(int64)
			said, ok := values[1].(string)
			class, used := c.strings[id]
			if !whole || !ok || !used {
				return nil
			}
			return put([]any{id, c.p.Text(class, said)})
		})
		if err != nil {
			return fmt.Errorf("table StringIds: %w", err)
		}
	}
	return nil
}
