package nsight

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/schema"
)

const demoReport = "../testdata/demo/training-nsight/report.sqlite"

// copyOf copies a database to a directory of its own.
func copyOf(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "report.sqlite")
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// execute runs statements in a database.
func execute(t testing.TB, path string, sql ...string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run(t, conn, sql...)
}

func run(t testing.TB, conn *sqlite.Conn, sql ...string) {
	t.Helper()
	for _, s := range sql {
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// digestOf imports an export and returns its digest.
func digestOf(t testing.TB, path string, o Options) string {
	t.Helper()
	res, err := Read(context.Background(), path, o)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return res.Digest
}

// refused imports an export that must be refused, and returns why.
func refused(t testing.TB, path string, o Options) string {
	t.Helper()
	res, err := Read(context.Background(), path, o)
	var r *schema.RejectedError
	if err == nil {
		t.Fatalf("%s: accepted with %d events", path, res.Events)
	}
	if !errors.As(err, &r) {
		t.Fatalf("%s: %v is no refusal", path, err)
	}
	return r.Reason
}
