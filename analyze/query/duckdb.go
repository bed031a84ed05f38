//go:build cgo && !noduckdb

package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"tracelake/internal/scratch"
	"tracelake/schema/lake"
)

// DB is a database over a dataset. It holds views and temporary data in
// memory, serves one query at a time, and sees the traces that were committed
// when it was opened.
type DB struct {
	connector *duckdb.Connector
	conn      *duckdb.Conn
	spill     *scratch.Dir      // for what does not fit into memory
	remote    *remote           // nil where the dataset is on this machine
	pending   map[string]string // views and macros by name that no statement has named yet
}

// Open opens the lake in a directory. The engine can read the committed files
// of the lake and nothing else: no other file, no network, no extension.
func Open(ctx context.Context, root string, o Options) (*DB, error) {
	l, err := lake.Open(root)
	if err != nil {
		return nil, err
	}
	commits, err := l.Settled()
	if err != nil {
		return nil, err
	}
	files, mixed, err := parts(l, commits)
	if err != nil {
		return nil, err
	}
	spill, err := scratch.In(o.TempDir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTempDir, err)
	}
	db := &DB{spill: spill}
	if l.Remote() {
		db.remote = newRemote(l, commits, files, mixed, filepath.Join(spill.Path(), "parts"))
		files = db.remote.copies()
	}
	if err := db.open(ctx, files, mixed, o); err != nil {
		return nil, errors.Join(fmt.Errorf("query: %w", err), db.Close())
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, files map[string][]string, mixed bool, o Options) error {
	var err error
	if db.connector, err = duckdb.NewConnector("", nil); err != nil {
		return err
	}
	conn, err := db.connector.Connect(ctx)
	if err != nil {
		return err
	}
	db.conn = conn.(*duckdb.Conn)

	var allowed []string
	for _, list := range files {
		for i, f := range list {
			if list[i], err = filepath.Abs(f); err != nil {
				return err
			}
			allowed = append(allowed, quote(list[i]))
		}
	}
	setup := []string{
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET allow_community_extensions = false",
		"SET allow_persistent_secrets = false",
		"SET parquet_metadata_cache = true", // the files never change, and each query reads thousands
		"SET temp_directory = " + quote(db.spill.Path()),
		"SET allowed_paths = [" + strings.Join(allowed, ", ") + "]",
	}
	if o.Spill == "" {
		if room := scratch.RoomIn(db.spill.Path()); room < math.MaxInt64 {
			o.Spill = fmt.Sprintf("%dB", room)
		}
	}
	if o.Spill != "" {
		setup = append(setup, "SET max_temp_directory_size = "+quote(o.Spill))
	}
	if o.Memory != "" {
		setup = append(setup, "SET memory_limit = "+quote(o.Memory))
	}
	if o.Threads > 0 {
		setup = append(setup, fmt.Sprintf("SET threads = %d", o.Threads))
	}
	here := files
	if db.remote != nil {
		here = nil // until a query wants them
	}
	settings, declarations := declarations(here, mixed)
	setup = append(append(setup, settings...), "SET enable_external_access = false", "SET lock_configuration = true")
	if !o.Lazy {
		for _, d := range declarations {
			setup = append(setup, d.sql)
		}
	}
	for _, s := range setup {
		if _, err := db.conn.ExecContext(ctx, s, nil); err != nil {
			return err
		}
	}
	if o.Lazy {
		db.pending = map[string]string{}
		for _, d := range declarations {
			db.pending[strings.ToLower(d.name)] = d.sql
		}
	}
	return nil
}

// declare declares what a statement names, and before it what that names.
func (db *DB) declare(ctx context.Context, statement string) error {
	if len(db.pending) == 0 {
		return nil
	}
	for _, name := range words(statement) {
		sql, ok := db.pending[name]
		if !ok {
			continue
		}
		delete(db.pending, name)
		if err := db.declare(ctx, sql); err != nil {
			return err
		}
		if _, err := db.conn.ExecContext(ctx, sql, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the database and removes what it spilled.
func (db *DB) Close() error {
	var errs []error
	if db.conn != nil {
		errs = append(errs, db.conn.Close())
	}
	if db.connector != nil {
		errs = append(errs, db.connector.Close())
	}
	return errors.Join(append(errs, db.spill.Remove())...)
}

// Select sets the variables that select traces for analyses, such as run, rank
// and trace. Of a dataset in an object store only what has rows of these traces
// is copied from then on, so that it must come before the first query, and
// queries must keep to selected_traces.
func (db *DB) Select(ctx context.Context, vars map[string]any) error {
	for name, value := range vars {
		if err := db.Set(ctx, name, value); err != nil {
			return err
		}
	}
	if db.remote != nil {
		db.remote.only(vars)
	}
	return nil
}

// Set sets a variable that scripts read with getvariable.
func (db *DB) Set(ctx context.Context, name string, value any) error {
	var literal string
	switch v := value.(type) {
	case int64:
		literal = fmt.Sprintf("%d::BIGINT", v)
	case string:
		literal = quote(v)
	case []string:
		texts := make([]string, len(v))
		for i, s := range v {
			texts[i] = quote(s)
		}
		literal = "[" + strings.Join(texts, ", ") + "]::VARCHAR[]"
	default:
		return fmt.Errorf("query: variable %s: %T is neither a number nor a text nor texts", name, value)
	}
	_, err := db.conn.ExecContext(ctx, "SET VARIABLE "+Identifier(name)+" = "+literal, nil)
	return err
}

// Exec runs a script whose rows do not matter.
func (db *DB) Exec(ctx context.Context, script string) error {
	rows, err := db.Query(ctx, script)
	if err != nil {
		return err
	}
	return rows.Close()
}

// Query runs a script and returns the rows of its last statement. Statements
// that could write a file are refused with ErrForbidden.
func (db *DB) Query(ctx context.Context, script string) (Rows, error) {
	statements := split(script)
	if len(statements) == 0 {
		return nil, ErrEmpty
	}
	if err := db.declare(ctx, script); err != nil {
		return nil, err
	}
	if err := db.fetch(ctx, script); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	for i, text := range statements {
		r, err := db.run(ctx, text)
		if err != nil {
			return nil, err
		}
		if i == len(statements)-1 {
			return r, nil
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	panic("BUG: a script without a last statement")
}

func (db *DB) run(ctx context.Context, text string) (*rows, error) {
	prepared, err := db.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	stmt := prepared.(*duckdb.Stmt)
	if err := permit(stmt, text); err != nil {
		return nil, errors.Join(err, stmt.Close())
	}
	r, err := stmt.QueryContext(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, stmt.Close())
	}
	return newRows(r, stmt), nil
}

// forbidden wraps ErrForbidden with the kind of the statement.
func forbidden(kind string) error {
	return fmt.Errorf("%s: %w", kind, ErrForbidden)
}

// writes finds statements that EXPLAIN ANALYZE would carry out.
var writes = regexp.MustCompile(`(?i)\b(copy|export|attach)\b`)

// permit refuses statements that have an effect outside the memory of this
// process. The list of allowed paths is the wall; this is the sign on it that
// also keeps the committed files from being written.
func permit(stmt *duckdb.Stmt, text string) error {
	kind, err := stmt.StatementType()
	if err != nil {
		return err
	}
	switch kind {
	case duckdb.STATEMENT_TYPE_EXPLAIN:
		if writes.MatchString(text) {
			return forbidden("EXPLAIN of a statement that writes")
		}
	case duckdb.STATEMENT_TYPE_COPY, duckdb.STATEMENT_TYPE_EXPORT:
		return forbidden("COPY and EXPORT")
	case duckdb.STATEMENT_TYPE_ATTACH, duckdb.STATEMENT_TYPE_DETACH:
		return forbidden("ATTACH and DETACH")
	case duckdb.STATEMENT_TYPE_LOAD, duckdb.STATEMENT_TYPE_EXTENSION:
		return forbidden("INSTALL and LOAD")
	case duckdb.STATEMENT_TYPE_PREPARE, duckdb.STATEMENT_TYPE_EXECUTE, duckdb.STATEMENT_TYPE_CALL,
		duckdb.STATEMENT_TYPE_LOGICAL_PLAN:
		return forbidden("PREPARE, EXECUTE and CALL")
	}
	return nil
}
