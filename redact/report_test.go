//go:build cgo && !noduckdb

package redact_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/nsight/reportcopy"
	"tracelake/redact"
)

const demoReport = "../testdata/demo/training-nsight/report.sqlite"

func policy(t testing.TB, o redact.Options) *redact.Policy {
	t.Helper()
	p, err := redact.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// copyReport writes the copy of a report and returns its path.
func copyReport(t testing.TB, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "copy.sqlite")
	if err := reportcopy.Copy(context.Background(), policy(t, redact.Options{}), path, out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out
}

// changed runs statements in a copy of the demo report.
func changed(t testing.TB, sql ...string) string {
	t.Helper()
	b, err := os.ReadFile(demoReport)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.sqlite")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range sql {
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

func TestReportRowsStay(t *testing.T) {
	files := []string{demoReport}
	shared := os.Getenv("TRACELAKE_SHARED")
	if shared == "" {
		shared = "../../shared"
	}
	more, err := filepath.Glob(filepath.Join(shared, "traces/nsys/synthetic/e20*.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	if len(more) == 0 {
		t.Log("NOT READ: the shared reports; TRACELAKE_SHARED may name the collection")
	} else {
		files = append(files, more[0], more[len(more)-1], filepath.Join(shared, "traces/nsys/nsys-ai_h100_2gpu_1s.sqlite"))
	}
	for _, f := range files {
		out := copyReport(t, f)
		db := redact.ImportAll(t, f, out)
		id := func(path string) string {
			return redact.Ask(t, db, "SELECT trace_id FROM traces WHERE path = '"+path+"'")[0]
		}
		redact.CompareRows(t, db, f, id(f), id(out))
	}
}

func TestReportTwice(t *testing.T) {
	once := copyReport(t, demoReport)
	twice := copyReport(t, once)
	a, err := os.ReadFile(once)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(twice)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("a second run changes the copy")
	}
}

func TestReportSecretsGo(t *testing.T) {
	const secret = "Zu1u"
	q := func(s string) string { return "'" + s + secret + " " + strings.Repeat(secret, 30) + "'" }
	path := changed(t,
		"INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', "+q("TOKEN=")+"), ("+q("KEY")+", 'x'), ('DEVICE_DISPLAY_NAME', "+q("host")+")",
		"INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_USER', "+q("")+"), ('EXPORT_PRODUCT_VERSION', "+q("2026.1")+")",
		"INSERT INTO StringIds VALUES (900001, "+q("HOME=/root TOKEN=")+"), (900002, "+q("argv ")+"), (900003, "+q("kernel_")+"), (900004, "+q("cuda")+"), (900005, "+q("{\"a\":")+")",
		"CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER)", "INSERT INTO ProcessStreams VALUES (1, 900001, 900002)",
		"CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT)", "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', "+q("")+")",
		"CREATE TABLE DIAGNOSTIC_EVENT (timestamp INT, severity INT, text TEXT)", "INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 3, "+q("failed: ")+"), ("+q("")+", 3, 'x')",
		"CREATE TABLE IF NOT EXISTS ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER)", "INSERT INTO ThreadNames SELECT 900002, 0, globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME LIMIT 1",
		"CREATE TABLE Other"+secret+" (a TEXT)", "INSERT INTO Other"+secret+" VALUES ("+q("")+")",
		"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN extra"+secret+" TEXT", "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET extra"+secret+" = "+q("")+", demangledName = 900003 WHERE rowid % 2 = 0",
		"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET registersPerThread = "+q("")+" WHERE rowid = 3",
		"UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET nameId = 900004 WHERE rowid = 1",
		"UPDATE NVTX_EVENTS SET text = "+q("")+" WHERE rowid = 2",
		"CREATE TABLE gone (a TEXT)", "INSERT INTO gone WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT "+q("free")+" FROM n", "DROP TABLE gone")
	source, err := os.ReadFile(path)
	if err != nil || bytes.Count(source, []byte(secret)) < 500 {
		t.Fatalf("the secrets are not in the source: %v", err)
	}
	for _, names := range []redact.Names{redact.PrivateNames, redact.AllNames} {
		out := filepath.Join(t.TempDir(), "copy.sqlite")
		if err := reportcopy.Copy(context.Background(), policy(t, redact.Options{Names: names, PIDs: true}), path, out); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(bytes.ToLower(b), []byte(strings.ToLower(secret))) {
			t.Errorf("%s: the secret is in the copy", names)
		}
		db := redact.ImportAll(t, out)
		if n := redact.Ask(t, db, "SELECT count(*) FILTER (name LIKE '%redacted_%'), count(*) FROM gpu_events WHERE kind = 'gpu_kernel'"); strings.HasPrefix(n[0], "0 ") {
			t.Errorf("%s: no kernel was renamed: %s", names, n)
		}
	}
}

func TestReportErrors(t *testing.T) {
	whole, err := os.ReadFile(changed(t, "CREATE TABLE Zu1u (a TEXT)"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	failed := 0
	for at := 0; at < len(whole); at += 4096 {
		b := bytes.Clone(whole)
		from := at + 8
		if at == 0 {
			from = 100
		}
		clear(b[from : from+60])
		bad := filepath.Join(dir, "bad.sqlite")
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "copy.sqlite")
		err := reportcopy.Copy(context.Background(), policy(t, redact.Options{}), bad, out)
		if err == nil {
			_ = os.Remove(out)
		} else {
			failed++
			if strings.Contains(err.Error(), "Zu1u") {
				t.Errorf("page %d: the error quotes the report: %v", at/4096+1, err)
			}
		}
		left, globErr := filepath.Glob(filepath.Join(dir, "copy*"))
		if globErr != nil || len(left) > 0 {
			t.Errorf("page %d: left behind: %v (%v)", at/4096+1, left, globErr)
		}
	}
	if failed == 0 {
		t.Error("no damage was noticed")
	}
	none := filepath.Join(dir, "none.sqlite")
	conn, err := sqlite.OpenConn(none, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(conn, "CREATE TABLE a (b TEXT)", nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := reportcopy.Copy(context.Background(), policy(t, redact.Options{}), none, filepath.Join(dir, "copy.sqlite")); err == nil || !strings.Contains(err.Error(), "no export") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := reportcopy.Copy(ctx, policy(t, redact.Options{}), demoReport, filepath.Join(dir, "copy.sqlite")); err == nil {
		t.Error("a cancelled copy succeeded")
	}
}
