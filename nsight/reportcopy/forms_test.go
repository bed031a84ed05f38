package reportcopy

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/nsight"
	"tracelake/redact"
	"tracelake/schema"
)

const (
	demo = "../../testdata/demo/training-nsight/report.sqlite"
	// secret is in every text of the planted report that has to go.
	secret = "Zu1u"
)

// forms are all forms of exports, with a name of a copy in each.
var forms = map[string]nsight.Kind{
	"copy.sqlite": nsight.SQLite, "copy_pqtdir": nsight.ParquetDir, "copy_arwdir": nsight.ArrowDir, "copy.arrows": nsight.ArrowStreams, "copy.jsonl": nsight.JSONLines,
}

func keyed(t *testing.T) *redact.Policy {
	t.Helper()
	p, err := redact.New(redact.Options{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// imported reads an export and returns what identifies all that was read.
func imported(t *testing.T, path string) (digest string, r *nsight.Result) {
	t.Helper()
	r, err := nsight.Read(context.Background(), path, nsight.Options{})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return r.Digest, r
}

// TestForms copies a report into every form, and each copy once more in its own
// form: all are one trace, and nothing is replaced twice.
func TestForms(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "first.sqlite")
	if err := Copy(context.Background(), keyed(t), demo, first); err != nil {
		t.Fatal(err)
	}
	want, source := imported(t, first)
	if source.GPU.Len() == 0 || source.Launches.Len() == 0 || source.Ranges.Len() == 0 {
		t.Fatal("the report has no work")
	}
	for name, kind := range forms {
		path := filepath.Join(dir, name)
		src, err := openDatabase(first)
		if err != nil {
			t.Fatal(err)
		}
		c := &copier{p: keyed(t), src: src, strings: map[int64]redact.Class{}, seen: map[int64]bool{}}
		if c.dst, err = newSink(kind, path); err != nil {
			t.Fatal(err)
		}
		if err := c.copy(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := c.dst.finish(); err != nil {
			t.Fatal(err)
		}
		if err := src.close(); err != nil {
			t.Fatal(err)
		}
		again := filepath.Join(dir, "again-"+name)
		p := keyed(t)
		if err := Copy(context.Background(), p, path, again); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(p.Counts()) > 0 {
			t.Errorf("%s: a second run replaces %v", name, p.Counts())
		}
		for _, f := range []string{path, again} {
			got, r := imported(t, f)
			if nsight.Sniff(f) != kind || got != want || r.Events != source.Events {
				t.Errorf("%s: kind %d, digest %s of %d events; want kind %d, %s of %d", f, nsight.Sniff(f), got, r.Events, kind, want, source.Events)
			}
		}
	}
}

// TestSharedForms copies forms of one report that nsys could have written:
// under one key their copies are one trace.
func TestSharedForms(t *testing.T) {
	shared := os.Getenv("TRACELAKE_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	dir := filepath.Join(shared, "traces/nsys/synthetic")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("SKIPPED: no shared reports; set TRACELAKE_SHARED to run this test")
	}
	want := ""
	for _, name := range []string{"e2026.sqlite", "e2026_pqtdir", "e2026_arwdir", "e2026.arrows"} {
		in, out := filepath.Join(dir, name), filepath.Join(t.TempDir(), name)
		p := keyed(t)
		if err := Copy(context.Background(), p, in, out); err != nil {
			t.Fatal(err)
		}
		if len(p.Counts()) < 3 {
			t.Errorf("%s: only %v was replaced", name, p.Counts())
		}
		got, r := imported(t, out)
		source, s := imported(t, in)
		if want == "" {
			want = got
		}
		if got != want || got == source || r.Events != s.Events || r.GPU.Len() != s.GPU.Len() {
			t.Errorf("%s: digest %s of %d events, want %s of %d", name, got, r.Events, want, s.Events)
		}
	}
	for _, name := range []string{"e2026.jsonl", "e2026_i64dict_pqtdir", "e2026_stream_arwdir"} { // other IDs
		in, out := filepath.Join(dir, name), filepath.Join(t.TempDir(), name)
		if err := Copy(context.Background(), keyed(t), in, out); err != nil {
			t.Fatal(err)
		}
		_, r := imported(t, out)
		if _, s := imported(t, in); r.Events != s.Events || r.GPU.Len() != s.GPU.Len() || r.Launches.Len() != s.Launches.Len() {
			t.Errorf("%s: %d events, want %d", name, r.Events, s.Events)
		}
	}
}

// TestOddDatabases copies databases that hold their rows in other ways than nsys
// writes them: what an import reads is in the copy.
func TestOddDatabases(t *testing.T) {
	const kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
	for name, sql := range map[string][]string{
		"view":          {"ALTER TABLE " + kernel + " RENAME TO hidden", "CREATE VIEW " + kernel + " AS SELECT * FROM hidden"},
		"generated":     {"ALTER TABLE " + kernel + " DROP COLUMN deviceId", "ALTER TABLE " + kernel + " ADD COLUMN deviceId INTEGER AS (contextId * 0)"},
		"letters":       {"ALTER TABLE StringIds RENAME TO s", "ALTER TABLE s RENAME TO STRINGIDS", "ALTER TABLE NVTX_EVENTS RENAME TO n", "ALTER TABLE n RENAME TO nvtx_events", "ALTER TABLE " + kernel + " RENAME COLUMN gridX TO GRIDX"},
		"without rowid": {"ALTER TABLE StringIds RENAME TO old", "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT) WITHOUT ROWID", "INSERT INTO StringIds SELECT * FROM old", "DROP TABLE old"},
		"types": {
			"CREATE TABLE s (id, value)", "INSERT INTO s SELECT CAST(id AS TEXT), CAST(value AS BLOB) FROM StringIds", "DROP TABLE StringIds", "ALTER TABLE s RENAME TO StringIds",
			"CREATE TABLE k AS SELECT * FROM " + kernel, "UPDATE k SET start = CAST(start AS TEXT), globalPid = CAST(globalPid AS TEXT), end = end + 0.0, shortName = shortName + 0.0",
			"DROP TABLE " + kernel, "CREATE TABLE " + kernel + " AS SELECT start, +end AS end, deviceId, streamId, correlationId, globalPid, demangledName, shortName FROM k", "DROP TABLE k",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in.sqlite"), filepath.Join(dir, "out.sqlite")
			b, err := os.ReadFile(demo)
			if err == nil {
				err = os.WriteFile(in, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			conn, err := sqlite.OpenConn(in, sqlite.OpenReadWrite)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sql {
				if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			p := keyed(t)
			if err := Copy(t.Context(), p, in, out); err != nil {
				t.Fatal(err)
			}
			_, want := imported(t, in)
			_, got := imported(t, out)
			if got.Events != want.Events || got.Events == 0 || !slices.Equal(got.GPU.Values("start_ns"), want.GPU.Values("start_ns")) || got.GPU.Has("device") != want.GPU.Has("device") || got.GPU.Has("grid_x") != want.GPU.Has("grid_x") {
				t.Errorf("%d events, want %d, or other GPU work", got.Events, want.Events)
			}
			for _, v := range got.GPU.Values("name") {
				if v == schema.Null {
					t.Fatal("a kernel lost its name")
				}
			}
		})
	}
}

// planted are the rows of a report whose texts are all private. Tables and
// columns that are not listed are written as if they were.
var planted = []struct {
	table string
	cols  []column
	rows  [][]any
}{
	{
		"CUPTI_ACTIVITY_KIND_KERNEL",
		[]column{{name: "start"}, {name: "end"}, {name: "deviceId"}, {name: "streamId"}, {name: "correlationId"}, {name: "globalPid"}, {name: "demangledName"}, {name: "registersPerThread", kind: text}, {name: "note" + secret, kind: text}},
		[][]any{{int64(10), int64(20), int64(0), int64(7), int64(1), int64(77 << 24), int64(1), secret, secret}},
	},
	{
		"CUPTI_ACTIVITY_KIND_RUNTIME",
		[]column{{name: "start"}, {name: "end"}, {name: "correlationId"}, {name: "globalTid"}, {name: "nameId"}},
		[][]any{{int64(1), int64(5), int64(1), int64(77<<24 + 78), int64(2)}},
	},
	{
		"NVTX_EVENTS",
		[]column{{name: "start"}, {name: "end"}, {name: "eventType"}, {name: "globalTid"}, {name: "text", kind: text}, {name: "doubleValue", kind: real}},
		[][]any{{int64(0), int64(30), int64(59), int64(77<<24 + 78), secret + "\n\"<\x01>", 1.5}},
	},
	{"PROCESSES", []column{{name: "globalPid"}, {name: "pid"}, {name: "name", kind: text}}, [][]any{{int64(77 << 24), int64(77), secret}, {int64(99 << 24), int64(99), secret}}},
	{"META_DATA_CAPTURE", nameValue, [][]any{{"DEVICE_DISPLAY_NAME", secret}, {"PROCESS_0:ENVIRONMENT_VARIABLE", "TOKEN=" + secret}, {secret, "x"}}},
	{"META_DATA_EXPORT", nameValue, [][]any{{"EXPORT_PRODUCT_VERSION", "2026.1" + secret}}},
	{"DIAGNOSTIC_EVENT", []column{{name: "timestamp"}, {name: "severity"}, {name: "text", kind: text}}, [][]any{{int64(1), int64(3), secret}}},
	{"TARGET_INFO_SYSTEM_ENV", nameValue, [][]any{{"Hostname", secret}}},
	{"Other" + secret, nameValue, [][]any{{secret, secret}}},
	{"StringIds", []column{{name: "id"}, {name: "value", kind: text}}, [][]any{{int64(1), secret + "_kernel"}, {int64(2), secret}, {int64(3), "unused " + secret}}},
}

func plant(t testing.TB, kind nsight.Kind, path string) {
	t.Helper()
	dst, err := newSink(kind, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range planted {
		put, err := dst.create(p.table, p.cols)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range p.rows {
			if err := put(row); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := dst.finish(); err != nil {
		t.Fatal(err)
	}
}

// content is all that a file or directory holds, names included.
func content(t *testing.T, path string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		all.WriteString(filepath.Base(p) + "\n" + string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestSecretsGo(t *testing.T) {
	old := parquetCompression
	parquetCompression = &parquet.Uncompressed
	defer func() { parquetCompression = old }()
	for name, kind := range forms {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in-"+name), filepath.Join(dir, name)
		plant(t, kind, in)
		if n := strings.Count(content(t, in), secret); n < 10 {
			t.Fatalf("%s: only %d secrets are in the source", name, n)
		}
		for _, names := range []redact.Names{redact.PrivateNames, redact.AllNames} {
			p, err := redact.New(redact.Options{Names: names, PIDs: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := Copy(context.Background(), p, in, ""); err != nil {
				t.Fatal(err)
			}
			listed := p.Counts()
			if p, err = redact.New(redact.Options{Names: names, PIDs: true}); err != nil {
				t.Fatal(err)
			}
			if err := Copy(context.Background(), p, in, out); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(listed) < 5 || len(listed) != len(p.Counts()) {
				t.Errorf("%s: a dry run lists %v, a run %v", name, listed, p.Counts())
			}
			copied := content(t, out)
			if strings.Contains(strings.ToLower(copied), strings.ToLower(secret)) {
				t.Errorf("%s, %s: the secret is in the copy", name, names)
			}
			if strings.Count(copied, "redacted_") < 5 {
				t.Errorf("%s: no placeholders", name)
			}
			if _, r := imported(t, out); r.GPU.Len() != 1 || r.Launches.Len() != 1 || r.Ranges.Len() != 1 || r.GPU.Name(r.GPU.Values("name")[0]) == "" {
				t.Errorf("%s: %d GPU events, %d launches, %d ranges", name, r.GPU.Len(), r.Launches.Len(), r.Ranges.Len())
			}
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDamagedForms cuts exports and checks that nothing is left that looks like
// a copy.
func TestDamagedForms(t *testing.T) {
	for name, kind := range forms {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in-"+name), filepath.Join(dir, "out", name)
		if err := os.Mkdir(filepath.Dir(out), 0o700); err != nil {
			t.Fatal(err)
		}
		plant(t, kind, in)
		file := in
		if st, err := os.Stat(in); err == nil && st.IsDir() {
			list, err := filepath.Glob(filepath.Join(in, "NVTX_EVENTS*"))
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			file = list[0]
		}
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range []int{len(whole) - 1, len(whole) - 9, len(whole) * 3 / 4} {
			if kind == nsight.JSONLines && bytes.HasSuffix(whole[:cut], []byte("}")) {
				continue // only the line feed is missing
			}
			if err := os.WriteFile(file, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			err := Copy(context.Background(), keyed(t), in, out)
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s cut at %d of %d: %v", name, cut, len(whole), err)
			}
		}
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := Copy(ctx, keyed(t), in, out); err == nil {
			t.Errorf("%s: a cancelled copy succeeded", name)
		}
		if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v %v", name, left, err)
		}
		// Copies that are made at once do not meet; one of two directories is last.
		isDir := kind == nsight.ParquetDir || kind == nsight.ArrowDir
		var errs [2]error
		var both sync.WaitGroup
		for i := range errs {
			p := keyed(t)
			both.Go(func() { errs[i] = Copy(context.Background(), p, in, out) })
		}
		both.Wait()
		if errs[0] != nil && errs[1] != nil || !isDir && errors.Join(errs[:]...) != nil {
			t.Errorf("%s twice: %v", name, errs)
		}
		if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
			t.Errorf("%s: left behind: %v %v", name, left, err)
		}
		err = Copy(context.Background(), keyed(t), in, out)
		if isDir != (err != nil && strings.Contains(err.Error(), "there already")) {
			t.Errorf("%s over another: %v", name, err)
		}
	}
}
