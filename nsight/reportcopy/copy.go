// Package reportcopy copies SQLite exports of Nsight Systems without what is
// private in them. It makes a new database out of listed tables and columns and
// never deletes from a copy: free pages keep what was deleted.
package reportcopy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/nsight/internal/readonly"
	"tracelake/redact"
)

// errNoReport says that a database is none of Nsight Systems.
var errNoReport = errors.New("a SQLite database, but no export of Nsight Systems: none of its tables is there")

// Copy writes the copy of a report to a new file, or, where out is "", only
// lets the policy count. Nothing is left of the file where an error is returned.
func Copy(ctx context.Context, p *redact.Policy, in, out string) error {
	return plain(ctx, copyTo(ctx, p, in, out))
}

// plain takes the message out of an error of SQLite, which may quote the report.
func plain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if code := sqlite.ErrCode(err); code != sqlite.ResultError || strings.Contains(err.Error(), "sqlite") {
		return fmt.Errorf("the database cannot be read or written: %v", code)
	}
	return err
}

func copyTo(ctx context.Context, p *redact.Policy, in, out string) (err error) {
	src, err := readonly.Open(in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	src.Conn.SetInterrupt(ctx.Done())
	c := &copier{p: p, src: src.Conn, strings: map[int64]redact.Class{}, seen: map[int64]bool{}}
	if out != "" {
		tmp := out + ".tmp"
		if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		defer func() {
			if err != nil {
				_ = os.Remove(tmp)
			}
		}()
		if c.dst, err = create(tmp); err != nil {
			return err
		}
		err = c.copy(ctx)
		if err == nil {
			err = sqlitex.ExecuteTransient(c.dst, "COMMIT", nil)
		}
		if err = errors.Join(err, c.dst.Close()); err != nil {
			return err
		}
		return os.Rename(tmp, out)
	}
	return c.copy(ctx)
}

// create makes an empty database and begins a transaction.
func create(path string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{"PRAGMA journal_mode=OFF", "PRAGMA synchronous=FULL", "BEGIN"} {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

type copier struct {
	p        *redact.Policy
	src, dst *sqlite.Conn // dst is nil where nothing is written
	strings  map[int64]redact.Class
	seen     map[int64]bool // processes of copied rows
}

func (c *copier) copy(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	have, err := c.tables()
	if err != nil {
		return err
	}
	some := false
	for i := range tables {
		for _, name := range have {
			if name == tables[i].name || variantOf(name, tables[i].name) {
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

// check looks for damage, which could make rows of what was deleted.
func (c *copier) check() error {
	ok := false
	err := sqlitex.ExecuteTransient(c.src, "PRAGMA quick_check(1)", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		ok = s.ColumnText(0) == "ok"
		return nil
	}})
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("the database is damaged")
	}
	return nil
}

// tables lists the tables of the report.
func (c *copier) tables() (out []string, err error) {
	err = sqlitex.ExecuteTransient(c.src, "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name",
		&sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			out = append(out, s.ColumnText(0))
			return nil
		}})
	return out, err
}

var suffix = regexp.MustCompile(`^_[Vv]\d{1,3}$`)

// variantOf tells whether a table is another with the number of a version.
func variantOf(name, table string) bool {
	rest, ok := strings.CutPrefix(name, table)
	return ok && suffix.MatchString(rest)
}

// columns returns those columns of a table that are listed.
func (c *copier) columns(name string, listed []column) (out []column, err error) {
	have := map[string]bool{}
	err = sqlitex.ExecuteTransient(c.src, "SELECT name FROM pragma_table_info(?)", &sqlitex.ExecOptions{Args: []any{name}, ResultFunc: func(s *sqlite.Stmt) error {
		have[s.ColumnText(0)] = true
		return nil
	}})
	for _, x := range listed {
		if have[x.name] {
			out = append(out, x)
		}
	}
	return out, err
}

// table copies a table.
func (c *copier) table(ctx context.Context, name string, t *table) error {
	cols, err := c.columns(name, t.columns)
	if err != nil || len(cols) == 0 {
		return err
	}
	put, err := c.create(name, cols)
	if err != nil {
		return err
	}
	var list []string
	for _, x := range cols {
		list = append(list, `"`+x.name+`"`)
	}
	row := make([]any, len(cols))
	return sqlitex.ExecuteTransient(c.src, `SELECT `+strings.Join(list, ", ")+` FROM "`+name+`" ORDER BY rowid`, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !c.row(s, t, cols, row) {
			return nil
		}
		return put(row)
	}})
}

// create makes a table and returns what adds a row.
func (c *copier) create(name string, cols []column) (put func([]any) error, err error) {
	if c.dst == nil {
		return func([]any) error { return nil }, nil
	}
	var defs, marks []string
	for _, x := range cols {
		typ := ""
		switch {
		case x.kind == text:
			typ = " TEXT"
		case x.kind != number || !strings.HasSuffix(x.name, "Value"):
			typ = " INTEGER"
		}
		defs = append(defs, `"`+x.name+`"`+typ)
		marks = append(marks, "?")
	}
	if err := sqlitex.ExecuteTransient(c.dst, `CREATE TABLE "`+name+`" (`+strings.Join(defs, ", ")+`)`, nil); err != nil {
		return nil, err
	}
	insert := `INSERT INTO "` + name + `" VALUES (` + strings.Join(marks, ", ") + `)`
	return func(row []any) error { return sqlitex.Execute(c.dst, insert, &sqlitex.ExecOptions{Args: row}) }, nil
}

// threadBits are the bits of a global ID that number the thread.
const threadBits = 1<<24 - 1

// row fills in what is copied of a row, and tells whether it is copied at all.
func (c *copier) row(s *sqlite.Stmt, t *table, cols []column, row []any) bool {
	for i, x := range cols {
		row[i] = c.value(s, i, x)
		if x.kind == global && s.ColumnType(i) == sqlite.TypeInteger {
			process := s.ColumnInt64(i) &^ threadBits
			if t.processes && !c.seen[process] {
				return false
			}
			c.seen[process] = true
		} else if x.kind == global && t.processes {
			return false
		}
	}
	if t.keys == nil {
		return true
	}
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
	key := s.ColumnText(name)
	class, ok := t.keys[key]
	if !ok {
		return false
	}
	row[name], row[value] = key, c.p.Text(class, s.ColumnText(value))
	return true
}

// value returns what stands for a value in the copy. A value of another type
// than its column should have is left out.
func (c *copier) value(s *sqlite.Stmt, i int, x column) any {
	typ := s.ColumnType(i)
	switch {
	case x.kind == text && typ == sqlite.TypeText && x.class != 0:
		return c.p.Text(x.class, s.ColumnText(i))
	case typ == sqlite.TypeFloat && x.kind == number:
		return s.ColumnFloat(i)
	case typ != sqlite.TypeInteger || x.kind == text:
		return nil
	}
	n := s.ColumnInt64(i)
	switch x.kind {
	case global:
		process, thread := n>>24&threadBits, n&threadBits
		return n&^(1<<48-1) | c.p.PID(process)<<24 | c.p.PID(thread)
	case pid:
		return c.p.PID(n)
	case stringID:
		c.strings[n] = max(c.strings[n], x.class)
	}
	return n
}

// texts copies those texts that copied rows refer to.
func (c *copier) texts(ctx context.Context, have []string) error {
	put, err := c.create("StringIds", []column{{name: "id"}, {name: "value", kind: text}})
	if err != nil {
		return err
	}
	for _, name := range have {
		if name != "StringIds" {
			continue
		}
		err := sqlitex.ExecuteTransient(c.src, `SELECT id, value FROM StringIds ORDER BY id`, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			class, ok := c.strings[s.ColumnInt64(0)]
			if !ok || s.ColumnType(0) != sqlite.TypeInteger || s.ColumnType(1) != sqlite.TypeText {
				return nil
			}
			return put([]any{s.ColumnInt64(0), c.p.Text(class, s.ColumnText(1))})
		}})
		if err != nil {
			return fmt.Errorf("table StringIds: %w", err)
		}
	}
	return nil
}
