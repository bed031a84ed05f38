package nsight

import (
	"context"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/nsight/internal/readonly"
	"tracelake/schema"
)

// library reads a database with the SQLite library. It changes nothing beside
// the database: where reading needs a journal or a log, a copy is read.
type library struct {
	db     *readonly.DB
	size   int64
	tables []string
	views  map[string]bool
}

// openLibrary opens a database read-only and takes its read lock, which lasts
// until close.
func openLibrary(path string) (l *library, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	l = &library{size: st.Size(), views: map[string]bool{}}
	if l.db, err = readonly.Open(path); err != nil {
		return nil, l.explain("", err)
	}
	err = sqlitex.ExecuteTransient(l.db.Conn, "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY rowid", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error {
			if len(l.tables) == maxTables {
				return reject("more than %d tables", maxTables)
			}
			name := s.ColumnText(0)
			l.tables = append(l.tables, name)
			if s.ColumnText(1) == "view" {
				l.views[name] = true
			}
			return nil
		},
	})
	if err != nil {
		_ = l.close()
		return nil, l.explain("", err)
	}
	return l, nil
}

// explain turns an error of the library into a refusal in words. The library's
// own message may quote what the database holds, so it is not passed on.
func (l *library) explain(table string, err error) error {
	if err == nil {
		return nil
	}
	var rejected *schema.RejectedError
	if errors.As(err, &rejected) || errors.Is(err, context.Canceled) || errors.Is(err, errStop) {
		return err
	}
	var pe *os.PathError
	switch {
	case errors.As(err, &pe):
		return err
	case errors.Is(err, readonly.ErrLocked), errors.Is(err, readonly.ErrChanged):
		return reject("%v", err)
	}
	in := ""
	if table != "" {
		in = " (table " + table + ")"
	}
	switch code := sqlite.ErrCode(err).ToPrimary(); code {
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return reject("%v", readonly.ErrLocked)
	case sqlite.ResultCorrupt:
		return reject("the database is damaged%s: copy or export it again", in)
	case sqlite.ResultNotADB:
		return reject("not a database of SQLite, or an encrypted one")
	case sqlite.ResultInterrupt:
		return context.Canceled
	default:
		return reject("SQLite cannot read the database%s: %s", in, strings.ToLower(code.Message()))
	}
}

func (l *library) format() string { return "sqlite" }

func (l *library) names() []string { return l.tables }

func (l *library) view(table string) bool { return l.views[table] }

func (l *library) bytes() int64 { return l.size }

func (l *library) close() error { return l.db.Close() }

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (l *library) columns(table string) (out []string, err error) {
	err = sqlitex.ExecuteTransient(l.db.Conn, "SELECT name FROM pragma_table_xinfo(?)", &sqlitex.ExecOptions{
		Args:       []any{table},
		ResultFunc: func(s *sqlite.Stmt) error { out = append(out, s.ColumnText(0)); return nil },
	})
	if err != nil {
		return nil, l.explain(table, err)
	}
	return out, nil
}

// libraryRows is how many rows a batch of the library has.
const libraryRows = 4096

func (l *library) scan(ctx context.Context, table string, wants []want, _ *idSet, emit func(*batch) error) error {
	have, err := l.columns(table)
	if err != nil {
		return err
	}
	// A view may compute for long before its first row.
	l.db.Conn.SetInterrupt(ctx.Done())
	defer l.db.Conn.SetInterrupt(nil)
	sql, at := "SELECT ", make([]int, len(wants)) // column of the result, -1 where absent
	n := 0
	for j, w := range wants {
		at[j] = -1
		if c := column(have, w.name); c >= 0 {
			at[j] = n
			if n++; n > 1 {
				sql += ", "
			}
			sql += quoted(have[c])
		}
	}
	if n == 0 {
		sql += "NULL"
	}
	stmt, _, err := l.db.Conn.PrepareTransient(sql + " FROM " + quoted(table) + " NOT INDEXED")
	if err != nil { // a view has no index to leave out
		stmt, _, err = l.db.Conn.PrepareTransient(sql + " FROM " + quoted(table))
	}
	if err != nil {
		return l.explain(table, err)
	}
	defer stmt.Finalize() //nolint:errcheck // what failed was reported by Step
	b := newBatch(wants, func(j int) bool { return at[j] >= 0 })
	var buf []byte
	for {
		more, err := stmt.Step()
		if err != nil {
			return l.explain(table, err)
		}
		if !more {
			break
		}
		for j, w := range wants {
			if at[j] >= 0 {
				var v int64
				v, buf = libraryValue(stmt, at[j], w.kind, b, buf)
				b.cols[j] = append(b.cols[j], v)
			}
		}
		if b.n++; b.n == libraryRows {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := emit(b); err != nil {
				return err
			}
			b.reset()
		}
	}
	if b.n == 0 {
		return nil
	}
	return emit(b)
}

func newBatch(wants []want, has func(j int) bool) *batch {
	b := &batch{cols: make([][]int64, len(wants)), texts: &texts{}}
	for j := range wants {
		if has(j) {
			b.cols[j] = make([]int64, 0, libraryRows)
		}
	}
	return b
}

func (b *batch) reset() {
	b.n, b.odd = 0, 0
	for j := range b.cols {
		b.cols[j] = b.cols[j][:0]
	}
	b.texts.reset()
}

// libraryValue reads a value, converted as far as that loses nothing.
func libraryValue(s *sqlite.Stmt, col int, k kind, b *batch, buf []byte) (int64, []byte) {
	switch s.ColumnType(col) {
	case sqlite.TypeNull:
		return schema.Null, buf
	case sqlite.TypeInteger:
		v := s.ColumnInt64(col)
		switch k {
		case real:
			return int64(math.Float64bits(float64(v))), buf
		case text:
			return b.texts.put(strconv.AppendInt(buf[:0], v, 10)), buf
		}
		return v, buf
	case sqlite.TypeFloat:
		return b.fromFloat(s.ColumnFloat(col), k), buf
	default:
		n := s.ColumnLen(col)
		if n > maxValueBytes {
			b.odd++
			return schema.Null, buf
		}
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		s.ColumnBytes(col, buf)
		return b.fromText(buf, k), buf
	}
}

// fromFloat converts a floating-point value.
func (b *batch) fromFloat(f float64, k kind) int64 {
	switch k {
	case real:
		return int64(math.Float64bits(f))
	case text:
		return b.texts.put([]byte(strconv.FormatFloat(f, 'g', -1, 64)))
	}
	whole := math.Trunc(f)
	if whole != f {
		b.odd++ // a fraction is cut off
	}
	if math.Abs(whole) < 1<<63 { // no NaN
		return int64(whole)
	}
	if whole == f {
		b.odd++
	}
	return schema.Null
}

// fromText converts a text or blob.
func (b *batch) fromText(s []byte, k kind) int64 {
	switch k {
	case text:
		return b.texts.put(s)
	case real:
		if f, err := strconv.ParseFloat(string(s), 64); err == nil {
			return int64(math.Float64bits(f))
		}
	default:
		if v, err := strconv.ParseInt(string(s), 10, 64); err == nil {
			return v
		}
		if v, err := strconv.ParseUint(string(s), 10, 64); err == nil {
			return int64(v)
		}
	}
	b.odd++
	return schema.Null
}

// check looks for damage in a table, or with "" in the database, which reading
// whole tables does not always meet.
func (l *library) check(table string) error {
	what := "1" // message at most
	if table != "" {
		what = quoted(table)
	}
	return l.explain(table, sqlitex.ExecuteTransient(l.db.Conn, "PRAGMA quick_check("+what+")", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error {
			if s.ColumnText(0) != "ok" {
				return reject("the database is damaged: SQLite's quick_check fails; copy or export it again")
			}
			return nil
		},
	}))
}
