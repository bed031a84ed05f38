// Package readonly opens SQLite databases for reading and changes nothing
// beside them: no log, no journal, no lock file.
package readonly

import (
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/internal/regular"
	"tracelake/internal/scratch"
	"tracelake/nsight/btree"
)

// DB is an open database.
type DB struct {
	Conn *sqlite.Conn
	// Plain databases have no log and no journal: their pages are what counts,
	// as long as the read lock is held.
	Plain bool
	temp  *scratch.Dir // of a copy; nil where the database itself is read
}

// Errors of Open besides those of the library and of the file system.
var (
	ErrLocked  = errors.New("the database is locked: another program is writing it; wait until it has ended")
	ErrChanged = errors.New("the database changed while it was read: another program is writing it; wait until it has ended")
)

// Open opens a database and takes its read lock, which lasts until Close. It
// does not wait for locks. Where a write-ahead log or the journal of a writer
// that died is needed, a copy in a temporary directory is read.
func Open(path string) (*DB, error) {
	db := &DB{}
	if err := db.open(path); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

func (db *DB) open(path string) error {
	from, query, err := db.prepare(path)
	if err != nil {
		return err
	}
	uri := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: from}).EscapedPath(), RawQuery: query}).String()
	if db.Conn, err = sqlite.OpenConn(uri, sqlite.OpenReadOnly|sqlite.OpenURI); err != nil {
		return err
	}
	db.Conn.SetBusyTimeout(0)
	for _, sql := range []string{"PRAGMA query_only=1", "PRAGMA trusted_schema=0", "PRAGMA cell_size_check=1", "BEGIN", "SELECT count(*) FROM sqlite_schema"} {
		if err := sqlitex.ExecuteTransient(db.Conn, sql, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the database and removes the copy, where there is one.
func (db *DB) Close() (err error) {
	if db.Conn != nil {
		err = db.Conn.Close()
	}
	if db.temp != nil {
		err = errors.Join(err, db.temp.Remove())
	}
	return err
}

// prepare finds out which file can be read without leaving a trace, and how.
func (db *DB) prepare(path string) (from, query string, err error) {
	if from, err = filepath.EvalSymlinks(path); err == nil {
		from, err = filepath.Abs(from)
	}
	if err != nil {
		return "", "", err
	}
	f, err := regular.Open(from)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	head := make([]byte, 20)
	if _, err := io.ReadFull(f, head); err != nil && !slices.Contains([]error{io.EOF, io.ErrUnexpectedEOF}, err) {
		return "", "", err
	}
	wal := string(head[:16]) == btree.Magic && (head[18] == 2 || head[19] == 2)
	var beside []string
	log := wal
	for _, suffix := range []string{"-journal", "-wal"} {
		st, err := os.Stat(from + suffix)
		if err != nil {
			continue
		}
		// SQLite looks for a log whatever the header says.
		log = log || suffix == "-wal"
		if st.Size() > 0 {
			beside = append(beside, suffix)
		}
	}
	switch {
	case len(beside) == 0 && log: // nothing is in the log, and shared memory is nothing to make for that
		return from, "mode=ro&immutable=1", nil
	case len(beside) == 0:
		db.Plain = true
		return from, "mode=ro", nil
	case !wal && writer(f):
		return "", "", ErrLocked
	}
	return db.copy(from, beside)
}

// copy copies a database and the log or journal beside it to a temporary
// directory.
func (db *DB) copy(from string, beside []string) (path, query string, err error) {
	if db.temp, err = scratch.New(); err != nil {
		return "", "", err
	}
	paths := []string{from}
	for _, suffix := range beside {
		paths = append(paths, from+suffix)
	}
	before, err := stamps(paths...)
	if err != nil {
		return "", "", err
	}
	to := filepath.Join(db.temp.Path(), "copy.sqlite")
	for _, s := range slices.Backward(paths) { // the database last
		if err := copyFile(to+s[len(from):], s); err != nil {
			return "", "", err
		}
	}
	after, err := stamps(paths...)
	if err != nil || !slices.Equal(before, after) {
		return "", "", ErrChanged
	}
	// Opening the copy for writing lets SQLite roll back or replay.
	conn, err := sqlite.OpenConn(to, sqlite.OpenReadWrite)
	if err == nil {
		for _, sql := range []string{"SELECT count(*) FROM sqlite_schema", "PRAGMA wal_checkpoint(TRUNCATE)"} {
			if err == nil {
				err = sqlitex.ExecuteTransient(conn, sql, nil)
			}
		}
		err = errors.Join(err, conn.Close())
	}
	return to, "mode=ro&immutable=1", err
}

// stamps returns sizes and times of files.
func stamps(paths ...string) (out []int64, err error) {
	for _, p := range paths {
		st, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		out = append(out, st.Size(), st.ModTime().UnixNano())
	}
	return out, nil
}

func copyFile(to, from string) error {
	in, err := regular.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
