package reportcopy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/internal/regular"
	"tracelake/nsight/btree"
	"tracelake/nsight/internal/readonly"
)

// plain takes the message out of an error of SQLite, which may quote the report.
func plain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	code := sqlite.ErrCode(err)
	if code == sqlite.ResultError && !strings.Contains(err.Error(), "sqlite") {
		return err
	}
	var copied *WriteError
	if errors.As(err, &copied) {
		return &WriteError{copied.Path, fmt.Errorf("the copy cannot be written: %v", code)}
	}
	return fmt.Errorf("the database cannot be read: %v", code)
}

// database is a report in SQLite.
type database struct {
	f  *os.File // closed after db: closing any handle of a file drops the locks of the process
	db *readonly.DB
}

func openDatabase(path string) (source, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	db, err := readonly.Open(path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d := &database{f, db}
	if err := d.whole(); err != nil {
		return nil, errors.Join(err, d.close())
	}
	if err := d.check(); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) close() error { return errors.Join(d.db.Close(), d.f.Close()) }

// whole refuses a file that is shorter than its header says, which the library
// does not mind as long as nothing that it reads is missing.
func (d *database) whole() error {
	if !d.db.Plain {
		return nil
	}
	st, err := d.f.Stat()
	if err != nil {
		return err
	}
	var corrupt *btree.CorruptError
	if _, err := btree.Open(d.f, st.Size()); errors.As(err, &corrupt) {
		return errors.New("the database is damaged: " + corrupt.Error())
	}
	return nil
}

// check looks for damage, which could make rows of what was deleted.
func (d *database) check() error {
	ok := false
	err := sqlitex.ExecuteTransient(d.db.Conn, "PRAGMA quick_check(1)", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
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

func (d *database) names() (out []string, err error) {
	// A view in place of a table is imported like one.
	err = sqlitex.ExecuteTransient(d.db.Conn, "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name",
		&sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			out = append(out, s.ColumnText(0))
			return nil
		}})
	return out, err
}

func (d *database) columns(name string, listed []column) (out []column, err error) {
	have := map[string]bool{}
	err = sqlitex.ExecuteTransient(d.db.Conn, "SELECT name FROM pragma_table_xinfo(?)", &sqlitex.ExecOptions{Args: []any{name}, ResultFunc: func(s *sqlite.Stmt) error {
		have[strings.ToLower(s.ColumnText(0))] = true
		return nil
	}})
	for _, x := range listed {
		if have[strings.ToLower(x.name)] {
			out = append(out, x)
		}
	}
	return out, err
}

func (d *database) scan(ctx context.Context, table string, cols []column, row func([]any) error) error {
	d.db.Conn.SetInterrupt(ctx.Done())
	var list []string
	for _, x := range cols {
		list = append(list, `"`+x.name+`"`)
	}
	values := make([]any, len(cols))
	// In the order that an import reads: a view has no index to leave out.
	query := `SELECT ` + strings.Join(list, ", ") + ` FROM "` + table + `"`
	stmt, _, err := d.db.Conn.PrepareTransient(query + " NOT INDEXED")
	if err == nil {
		query += " NOT INDEXED"
		err = stmt.Finalize()
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	return sqlitex.ExecuteTransient(d.db.Conn, query, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		for i := range values {
			values[i] = valueOf(s, i, cols[i].kind)
		}
		return row(values)
	}})
}

// valueOf reads a value as an import does: SQLite keeps values of any type in any
// column.
func valueOf(s *sqlite.Stmt, i int, k kind) any {
	switch s.ColumnType(i) {
	case sqlite.TypeNull:
		return nil
	case sqlite.TypeInteger:
		v := s.ColumnInt64(i)
		if k == text {
			return strconv.FormatInt(v, 10)
		}
		return v
	case sqlite.TypeFloat:
		f := s.ColumnFloat(i)
		switch {
		case k == text:
			return strconv.FormatFloat(f, 'g', -1, 64)
		case k != real && math.Abs(f) < 1<<63:
			return int64(f)
		}
		return f
	}
	b := make([]byte, s.ColumnLen(i))
	s.ColumnBytes(i, b)
	said := string(b)
	switch k {
	case text:
		return said
	case real:
		if f, err := strconv.ParseFloat(said, 64); err == nil {
			return f
		}
	case number, global, pid, stringID:
		if v, err := strconv.ParseInt(said, 10, 64); err == nil {
			return v
		}
		if v, err := strconv.ParseUint(said, 10, 64); err == nil {
			return int64(v)
		}
	}
	return nil
}

// newDatabase is a copy in SQLite, written in one transaction.
type newDatabase struct {
	conn *sqlite.Conn
}

func createDatabase(path string) (sink, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{"PRAGMA journal_mode=OFF", "PRAGMA synchronous=FULL", "BEGIN"} {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return &newDatabase{conn}, nil
}

func (d *newDatabase) create(name string, cols []column) (put func([]any) error, err error) {
	var defs, marks []string
	for _, x := range cols {
		typ := " INTEGER"
		switch x.kind {
		case text:
			typ = " TEXT"
		case real:
			typ = ""
		case number, global, pid, stringID:
		}
		defs = append(defs, `"`+x.name+`"`+typ)
		marks = append(marks, "?")
	}
	if err := sqlitex.ExecuteTransient(d.conn, `CREATE TABLE "`+name+`" (`+strings.Join(defs, ", ")+`)`, nil); err != nil {
		return nil, err
	}
	insert := `INSERT INTO "` + name + `" VALUES (` + strings.Join(marks, ", ") + `)`
	return func(row []any) error { return sqlitex.Execute(d.conn, insert, &sqlitex.ExecOptions{Args: row}) }, nil
}

func (d *newDatabase) finish() error {
	return errors.Join(sqlitex.ExecuteTransient(d.conn, "COMMIT", nil), d.conn.Close())
}

func (d *newDatabase) abandon() { _ = d.conn.Close() }
