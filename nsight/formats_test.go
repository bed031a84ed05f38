package nsight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"tracelake/schema"
)

func synthetic(t testing.TB) string {
	t.Helper()
	shared := os.Getenv("TRACELAKE_SHARED")
	if shared == "" {
		shared = "../../shared"
	}
	dir := filepath.Join(shared, "traces/nsys/synthetic")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("SKIPPED: no shared reports; set TRACELAKE_SHARED to run this test")
	}
	return dir
}

// rowsOf imports an export and writes every row of every table as text.
func rowsOf(t *testing.T, path string, o Options) (*Result, map[string][]string) {
	t.Helper()
	out := map[string][]string{}
	o.RowGroups = func(tab *schema.Table, n int, cols []schema.Vector, done func()) error {
		defer done()
		lines := make([]string, n)
		for c := range cols {
			v := &cols[c]
			for k, x := range v.Vals {
				row := k
				if v.Rows != nil {
					row = int(v.Rows[k])
				}
				if v.Dict != nil {
					lines[row] += fmt.Sprintf("|%s=%s", tab.Columns[c].Name, v.Dict[x])
				} else {
					lines[row] += fmt.Sprintf("|%s=%d", tab.Columns[c].Name, x)
				}
			}
		}
		out[tab.Name] = append(out[tab.Name], lines...)
		return nil
	}
	res, err := Read(context.Background(), path, o)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, r := range []*Rows{res.GPU, res.Launches, res.Ranges} {
		lines := make([]string, r.Len())
		for c, col := range r.Table.Columns {
			for i, v := range r.ValuesAt(c) {
				switch {
				case v == schema.Null:
				case col.Type == schema.String && col.Name != "kind":
					lines[i] += fmt.Sprintf("|%s=%s", col.Name, r.Name(v))
				default:
					lines[i] += fmt.Sprintf("|%s=%d", col.Name, v)
				}
			}
		}
		out[r.Table.Name] = lines
	}
	return res, out
}

// TestBatches: what comes in one batch, which depends on the form of a report,
// does not change its digest.
func TestBatches(t *testing.T) {
	path := reportOf(t, "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT, domainId INT, uint64Value INT)",
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 9000) INSERT INTO NVTX_EVENTS
			SELECT i, iif(i % 2, i+1, NULL), iif(i % 2, 59, 34), 'text ' || (i % 777), 16777216, i % 3, iif(i % 5, i, NULL) FROM n`)
	want := digestOf(t, path, Options{Library: true})
	for _, size := range []string{"512", "4096", "65536"} {
		execute(t, path, "PRAGMA page_size="+size, "VACUUM")
		if got := digestOf(t, path, Options{}); got != want {
			t.Errorf("pages of %s bytes: digest %s, want %s", size, got, want)
		}
	}
	lines := writeJSONLines(t, path)
	if got := digestOf(t, lines, Options{}); got != want {
		t.Errorf("JSON lines: digest %s, want %s", got, want)
	}
}

// TestArrowTypes: columns without values, and times in any unit, are read as
// what they are.
func TestArrowTypes(t *testing.T) {
	dir := t.TempDir()
	units := []arrow.TimeUnit{arrow.Nanosecond, arrow.Microsecond, arrow.Millisecond, arrow.Second}
	for i, unit := range units {
		for j, stamp := range []arrow.DataType{&arrow.TimestampType{Unit: unit}, &arrow.DurationType{Unit: unit}} {
			path := filepath.Join(dir, fmt.Sprintf("%d-%d.arrows", i, j))
			writeArrow(t, path, "StringIds", []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "value", Type: arrow.BinaryTypes.String}}, `[{"id": 1, "value": "name"}]`)
			writeArrow(t, path, tableKernel, []arrow.Field{{Name: "start", Type: stamp}, {Name: "end", Type: arrow.PrimitiveTypes.Int64}, {Name: "graphId", Type: arrow.Null}}, `[{"start": 2, "end": 5000000000}]`)
			res, err := Read(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := res.GPU.Values("start_ns")[0], 2*int64(unit.Multiplier()); got != want || counted(res)[schema.OddArgument] != 0 {
				t.Errorf("%v: %d, want %d; %v", stamp, got, want, counted(res))
			}
		}
	}
}

// writeArrow appends a table to a file of streams.
func writeArrow(t *testing.T, path, table string, fields []arrow.Field, rows string) {
	t.Helper()
	meta := arrow.NewMetadata([]string{"table_name"}, []string{table})
	s := arrow.NewSchema(fields, &meta)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w := ipc.NewWriter(f, ipc.WithSchema(s))
	if err := errors.Join(w.Write(rec), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestFormats checks that every encoding of one report gives the same rows
// under the same digest.
func TestFormats(t *testing.T) {
	dir := synthetic(t)
	want, rows := rowsOf(t, filepath.Join(dir, "e2026.sqlite"), Options{})
	if want.Format != "sqlite" || want.GPU.Len() == 0 {
		t.Fatalf("%+v", want)
	}
	for name, format := range map[string]string{
		"e2026_pqtdir": "parquetdir", "e2026_arwdir": "arrowdir", "e2026.arrows": "arrows",
		"e2026_i64dict_pqtdir": "parquetdir", "e2026_stream_arwdir": "arrowdir",
	} {
		t.Run(name, func(t *testing.T) {
			got, have := rowsOf(t, filepath.Join(dir, name), Options{})
			if got.Format != format {
				t.Errorf("format %s, want %s", got.Format, format)
			}
			for table := range rows {
				for i := range max(len(rows[table]), len(have[table])) {
					if i >= len(have[table]) || i >= len(rows[table]) || rows[table][i] != have[table][i] {
						t.Fatalf("%s row %d of %d and %d:\n got %.500q\nwant %.500q", table, i, len(have[table]), len(rows[table]), at(have[table], i), at(rows[table], i))
					}
				}
			}
			// The last two were generated with other string IDs.
			if (got.Digest == want.Digest) != (name != "e2026_i64dict_pqtdir" && name != "e2026_stream_arwdir") {
				t.Errorf("digest %s, and that of SQLite is %s", got.Digest, want.Digest)
			}
			if !reflect.DeepEqual(got.Diags.List(), want.Diags.List()) || !reflect.DeepEqual(got.Rows, want.Rows) || !reflect.DeepEqual(got.Kinds, want.Kinds) {
				t.Errorf("diagnostics %v, want %v", got.Diags.List(), want.Diags.List())
			}
		})
	}
	t.Run("jsonlines", func(t *testing.T) {
		got, have := rowsOf(t, writeJSONLines(t, filepath.Join(dir, "e2026.sqlite")), Options{})
		if got.Format != "jsonlines" || got.Digest != want.Digest || !reflect.DeepEqual(have, rows) {
			t.Errorf("%s, digest %s, want %s", got.Format, got.Digest, want.Digest)
		}
		// The shared file has an eventId of its own in every table.
		got, have = rowsOf(t, filepath.Join(dir, "e2026.jsonl"), Options{})
		for i, row := range have["cpu_events"] {
			have["cpu_events"][i] = regexp.MustCompile(`\|args_json=\{"eventId":\d+\}`).ReplaceAllString(row, "")
		}
		if got.Format != "jsonlines" || !reflect.DeepEqual(have, rows) {
			t.Error("the shared file has other rows")
		}
	})
	library, have := rowsOf(t, filepath.Join(dir, "e2026.sqlite"), Options{Library: true, Workers: 1, RowGroup: 7})
	if library.Digest != want.Digest || !reflect.DeepEqual(have, rows) {
		t.Error("the library reads other rows than the scan")
	}
}

func at(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return ""
}

// writeJSONLines writes the tables of a database the way nsys does: nulls left
// out, the name of the table last.
func writeJSONLines(t *testing.T, path string) string {
	t.Helper()
	src, err := openSQLite(path, Options{Library: true})
	if err != nil {
		t.Fatal(err)
	}
	defer src.close()
	var out strings.Builder
	for _, table := range src.names() {
		columns, err := src.columns(table)
		if err != nil {
			t.Fatal(err)
		}
		wants := ints(columns...)
		for j, c := range columns {
			switch c {
			case "doubleValue", "floatValue":
				wants[j].kind = real
			case "value", "name", "text", "jsonText", "label", "uuid", "metricName", "typeName", "utcTime", "localTime", "busLocation", "chipName", "devStateName", "binaryData", "tensorSizeMinusOneElements":
				wants[j].kind = text
			}
		}
		err = src.scan(context.Background(), table, wants, nil, func(b *batch) error {
			for i := range b.n {
				out.WriteString("{")
				for j, w := range wants {
					switch v := cell(b, j, i); {
					case v == schema.Null:
					case w.kind == text && w.name == "value" && table == "GPU_METRICS":
						fmt.Fprintf(&out, "%q: %s, ", w.name, b.texts.list[v])
					case w.kind == text:
						s, err := json.Marshal(b.texts.list[v])
						if err != nil {
							return err
						}
						fmt.Fprintf(&out, "%q: %s, ", w.name, s)
					case w.kind == real:
						fmt.Fprintf(&out, "%q: %v, ", w.name, math.Float64frombits(uint64(v)))
					default:
						fmt.Fprintf(&out, "%q: %d, ", w.name, v)
					}
				}
				fmt.Fprintf(&out, "\"table\": %q}\n", table)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "export.json")
	if err := os.WriteFile(to, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}
