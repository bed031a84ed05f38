package nsight

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// listing describes the files of a directory: names, sizes, times.
func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, info.Name(), info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	return b.String()
}

// TestLeftToSQLite reads databases that the scan does not know: each holds the
// rows of the report and is read without a trace.
func TestLeftToSQLite(t *testing.T) {
	want := digestOf(t, demoReport, Options{})
	kernel := "CUPTI_ACTIVITY_KIND_KERNEL"
	for name, change := range map[string]func(t *testing.T, path string){
		"plain":  func(*testing.T, string) {},
		"vacuum": func(t *testing.T, path string) { execute(t, path, "PRAGMA page_size=512", "VACUUM") },
		"large":  func(t *testing.T, path string) { execute(t, path, "PRAGMA page_size=65536", "VACUUM") },
		"auto":   func(t *testing.T, path string) { execute(t, path, "PRAGMA auto_vacuum=FULL", "VACUUM") },
		"index":  func(t *testing.T, path string) { execute(t, path, "CREATE INDEX k ON "+kernel+" (start)") },
		"wal":    func(t *testing.T, path string) { execute(t, path, "PRAGMA journal_mode=WAL") },
		"column": func(t *testing.T, path string) {
			execute(t, path, "ALTER TABLE "+kernel+" ADD COLUMN more TEXT DEFAULT 'x'")
		},
		"comment": func(t *testing.T, path string) {
			execute(t, path, "CREATE TABLE more (a /* , b */ INT, -- c\n \"d, e\" TEXT, f)")
		},
		"utf16": func(t *testing.T, path string) {
			rebuild(t, path, "PRAGMA encoding='UTF-16le'")
		},
		"without rowid": func(t *testing.T, path string) {
			execute(t, path, "CREATE TABLE s (id INTEGER PRIMARY KEY, value TEXT) WITHOUT ROWID", "INSERT INTO s SELECT * FROM StringIds", "DROP TABLE StringIds", "ALTER TABLE s RENAME TO StringIds")
		},
		"view": func(t *testing.T, path string) {
			execute(t, path, "ALTER TABLE "+kernel+" RENAME TO hidden", "CREATE VIEW "+kernel+" AS SELECT * FROM hidden", "ALTER TABLE hidden RENAME TO META_DATA_more")
		},
		"generated": func(t *testing.T, path string) {
			execute(t, path, "ALTER TABLE "+kernel+" ADD COLUMN twice INTEGER AS (start * 2) VIRTUAL")
		},
		"log": unfinishedLog,
		"log beside a header without one": func(t *testing.T, path string) { // which SQLite reads too
			unfinishedLog(t, path)
			withoutLog(t, path)
		},
		"empty log beside a header without one": func(t *testing.T, path string) {
			if err := os.WriteFile(path+"-wal", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"journal": func(t *testing.T, path string) { // a writer died in the middle
			conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
			if err != nil {
				t.Fatal(err)
			}
			run(t, conn, "PRAGMA journal_mode=DELETE", "PRAGMA cache_size=1", "PRAGMA cache_spill=1", "BEGIN", "DELETE FROM "+kernel, "UPDATE StringIds SET value = 'gone'",
				"CREATE TABLE bulk AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000) SELECT i, hex(randomblob(40)) FROM n")
			crash(t, conn, path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := copyOf(t, demoReport)
			change(t, path)
			dir := filepath.Dir(path)
			before := listing(t, dir)
			if got := digestOf(t, path, Options{}); got != want {
				t.Errorf("other rows than those of the report")
			}
			if got := digestOf(t, path, Options{Library: true}); got != want {
				t.Errorf("the library reads other rows than those of the report")
			}
			if after := listing(t, dir); after != before {
				t.Errorf("the directory changed from\n%s to\n%s", before, after)
			}
		})
	}
}

// unfinishedLog leaves a log with rows that the database lacks.
func unfinishedLog(t *testing.T, path string) {
	t.Helper()
	execute(t, path, "PRAGMA journal_mode=WAL", "CREATE TABLE keep AS SELECT * FROM StringIds", "DELETE FROM StringIds")
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	run(t, conn, "PRAGMA wal_autocheckpoint=0", "INSERT INTO StringIds SELECT * FROM keep", "DROP TABLE keep")
	crash(t, conn, path)
}

// withoutLog makes the header of a database say that it has no log.
func withoutLog(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		b[18], b[19] = 1, 1
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStatements: whatever way a statement declares the column that stands for
// the rowid, its values are those that SQLite reads.
func TestStatements(t *testing.T) {
	want := digestOf(t, demoReport, Options{})
	for _, columns := range []string{
		"id INTEGER PRIMARY KEY, value TEXT", "id INT PRIMARY KEY, value TEXT", `id "INTEGER" PRIMARY KEY, value TEXT`, "id [integer] PRIMARY KEY, value TEXT",
		"id 'INTEGER' NOT NULL, value TEXT, PRIMARY KEY(id)", "id INTEGER, value TEXT, UNIQUE(value) PRIMARY KEY(id)",
		"id INTEGER, value TEXT, FOREIGN KEY(id) REFERENCES x(y) CONSTRAINT k PRIMARY KEY(id)", "id INTEGER, value TEXT, CONSTRAINT a CONSTRAINT b PRIMARY KEY(id)",
		"id INTEGER PRIMARY KEY DESC, value TEXT", "id INTEGER, value TEXT, PRIMARY KEY(id DESC)", "id INTEGER(8) PRIMARY KEY, value TEXT", "id BIG INTEGER PRIMARY KEY, value TEXT",
		"id integer /* , */ primary -- key\n key, value TEXT DEFAULT 'a,b)'", "id INTEGER DEFAULT(3) CHECK(id >= 0) PRIMARY KEY AUTOINCREMENT, value",
	} {
		path := copyOf(t, demoReport)
		execute(t, path, "ALTER TABLE StringIds RENAME TO old", "CREATE TABLE StringIds ("+columns+")", "INSERT INTO StringIds SELECT * FROM old", "DROP TABLE old")
		for _, o := range []Options{{}, {Library: true}} {
			if got := digestOf(t, path, o); got != want {
				t.Errorf("%s: other rows (library: %v)", columns, o.Library)
			}
		}
	}
}

// rebuild copies all tables into a new database.
func rebuild(t *testing.T, path, pragma string) {
	t.Helper()
	old := path + ".old"
	if err := os.Rename(path, old); err != nil {
		t.Fatal(err)
	}
	from, err := sqlite.OpenConn(old, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	to, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	run(t, to, pragma)
	err = sqlitex.ExecuteTransient(from, "SELECT name, sql FROM sqlite_schema", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		run(t, to, s.ColumnText(1))
		name := s.ColumnText(0)
		return sqlitex.ExecuteTransient(from, "SELECT * FROM "+name, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			args := make([]any, s.ColumnCount())
			for i := range args {
				switch s.ColumnType(i) {
				case sqlite.TypeInteger:
					args[i] = s.ColumnInt64(i)
				case sqlite.TypeText:
					args[i] = s.ColumnText(i)
				}
			}
			marks := strings.TrimSuffix(strings.Repeat("?,", len(args)), ",")
			return sqlitex.ExecuteTransient(to, "INSERT INTO "+name+" VALUES ("+marks+")", &sqlitex.ExecOptions{Args: args})
		}})
	}})
	if err := errors.Join(err, from.Close(), to.Close(), os.Remove(old)); err != nil {
		t.Fatal(err)
	}
}

// crash leaves files as a killed writer does: they are kept aside while the
// connection ends.
func crash(t *testing.T, conn *sqlite.Conn, path string) {
	t.Helper()
	kept := map[string][]byte{}
	for _, s := range []string{"", "-wal", "-journal"} {
		if b, err := os.ReadFile(path + s); err == nil {
			kept[path+s] = b
		}
	}
	if len(kept) != 2 {
		t.Fatalf("%d files: no log or journal", len(kept))
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + s); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	for p, b := range kept {
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMain is also the program that writes a database for TestLocked.
func TestMain(m *testing.M) {
	path, mode := os.Getenv("NSIGHT_TEST_WRITE"), os.Getenv("NSIGHT_TEST_MODE")
	if path == "" {
		os.Exit(m.Run())
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	for _, sql := range strings.Split(mode, ";") {
		if err == nil {
			err = sqlitex.ExecuteTransient(conn, sql, nil)
		}
	}
	fmt.Println("ready", err)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is done
	if err == nil {
		err = sqlitex.ExecuteTransient(conn, "ROLLBACK", nil)
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		os.Exit(1)
	}
}

// TestLocked reads a database while another process writes it.
func TestLocked(t *testing.T) {
	for name, mode := range map[string]string{
		"exclusive": "PRAGMA journal_mode=DELETE;BEGIN EXCLUSIVE",
		"spilled": "PRAGMA journal_mode=DELETE;PRAGMA cache_size=1;BEGIN;DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL;" +
			"CREATE TABLE bulk AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000) SELECT i, hex(randomblob(40)) FROM n",
	} {
		t.Run(name, func(t *testing.T) {
			path := copyOf(t, demoReport)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "NSIGHT_TEST_WRITE="+path, "NSIGHT_TEST_MODE="+mode)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready <nil>\n" {
				t.Fatalf("the writer says %q, %v", line, err)
			}
			if why := refused(t, path, Options{}); !strings.Contains(why, "locked: another program is writing") {
				t.Error(why)
			}
			if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
				t.Fatal(err)
			}
			if digestOf(t, path, Options{}) != digestOf(t, demoReport, Options{}) {
				t.Error("other rows afterwards")
			}
		})
	}
}

// TestNames opens files whose names mean something in a URI.
func TestNames(t *testing.T) {
	want := digestOf(t, demoReport, Options{})
	for _, name := range []string{"a%6f.sqlite", "a#b.sqlite", "a?mode=rwc.db", "a b.sqlite", "ü.sqlite3"} {
		from := copyOf(t, demoReport)
		path := filepath.Join(filepath.Dir(from), name)
		if err := os.Rename(from, path); err != nil {
			t.Fatal(err)
		}
		before := listing(t, filepath.Dir(path))
		if digestOf(t, path, Options{Library: true}) != want || digestOf(t, path, Options{}) != want {
			t.Errorf("%s: other rows", name)
		}
		if after := listing(t, filepath.Dir(path)); after != before {
			t.Errorf("%s: the directory changed to\n%s", name, after)
		}
	}
}
