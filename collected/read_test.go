package collected

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/schema"
)

// got is what a file became: the cells of each row by column, and what was
// noticed.
type got struct {
	table string
	rows  []map[string]string
	diags []schema.Diagnostic
	most  int // rows of the largest row group
}

func readText(t *testing.T, text string, o Options) got {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var g got
	d := &schema.Diagnostics{}
	o.Name, o.Diags = "t.jsonl", d
	if o.RowGroup == 0 {
		o.RowGroup = 1000
	}
	o.Start = func(t *schema.Table) (string, error) { g.table = t.Name; return "", nil }
	o.RowGroups = func(tab *schema.Table, n int, cols []schema.Vector) error {
		first := len(g.rows)
		g.most = max(g.most, n)
		for range n {
			g.rows = append(g.rows, map[string]string{})
		}
		for c := 1; c < len(cols); c++ {
			v := &cols[c]
			for k, x := range v.Vals {
				r := k
				if v.Rows != nil {
					r = int(v.Rows[k])
				}
				text := fmt.Sprint(x)
				switch tab.Columns[c].Type {
				case schema.String:
					text = v.Dict[x]
				case schema.Float64:
					text = fmt.Sprint(math.Float64frombits(uint64(x)))
				}
				g.rows[first+r][tab.Columns[c].Name] = text
			}
		}
		return nil
	}
	if err := Read(context.Background(), path, o); err != nil {
		t.Fatal(err)
	}
	g.diags = d.List()
	return g
}

const userHeader = `{"table":"mine","columns":[{"name":"i","type":"int64"},{"name":"f","type":"float64"},{"name":"s","type":"string"},{"name":"b","type":"bool"},{"name":"v_json","type":"string"}],"tracer":"t","tracer_version":"3"}` + "\n"

func TestValues(t *testing.T) {
	g := readText(t, userHeader+
		`{"i": 9007199254740993, "f": 0.1, "s": "a\"\u00e9\n", "b": true, "v_json": {"x": [1, 2]}}`+"\n"+
		`{"i": 2.0e3, "f": NaN, "s": "", "b": false, "v_json": "[1]"}`+"\r\n"+
		"\n"+
		`{"i": -9223372036854775807, "f": -Infinity, "s": null, "b": null}`+"\n"+
		`  { }  `, Options{Rows: -1, RowGroup: 2, Keys: Keys{Model: "a/b", Mode: "eval"}})
	if g.table != "x_mine" || len(g.rows) != 4 || g.most != 2 || len(g.diags) != 0 {
		t.Fatalf("table %s, %d rows, %d in a group, %v", g.table, len(g.rows), g.most, g.diags)
	}
	want := []map[string]string{
		{"i": "9007199254740993", "f": "0.1", "s": "a\"é\n", "b": "1", "v_json": `{"x":[1,2]}`},
		{"i": "2000", "f": "NaN", "s": "", "b": "0", "v_json": "[1]"},
		{"i": "-9223372036854775807", "f": "-Inf"},
		{},
	}
	for i, w := range want {
		w["model"], w["mode"], w["tracer"], w["tracer_version"] = "a/b", "eval", "t", "3"
		if fmt.Sprint(g.rows[i]) != fmt.Sprint(w) {
			t.Errorf("row %d: %v, want %v", i, g.rows[i], w)
		}
	}
}

// TestFaults checks that whatever is wrong is counted, with file and line, and
// that everything else is read.
func TestFaults(t *testing.T) {
	row := `{"i": 1}` + "\n"
	ops := func(columns string) string { return `{"table":"guards","columns":[` + columns + `]}` + "\n" }
	full := `{"name":"guard_index","type":"int64"},{"name":"graph_id","type":"string"},{"name":"guard_type","type":"string"},{"name":"source","type":"string"},{"name":"code","type":"string"},{"name":"stack","type":"string"}`
	for _, c := range []struct {
		name, text string
		rows       int   // that are read
		promised   int64 // rows
		code       schema.Code
		n          int64
		message    string
	}{
		{"broken line", userHeader + row + "{\"i\": 1,}\n" + row, 2, -1, schema.TableRow, 1, "t.jsonl:3: the line is no JSON object"},
		{"not an object", userHeader + "[1]\n17\n" + row, 1, -1, schema.TableRow, 2, "t.jsonl:2: "},
		{"two objects", userHeader + "{} {}\n" + row, 1, -1, schema.TableRow, 1, "t.jsonl:2: "},
		{"raw control character", userHeader + "{\"s\": \"a\tb\"}\n" + row, 1, -1, schema.TableRow, 1, "t.jsonl:2: "},
		{"cut line", userHeader + row + `{"i": 2, "s": "ab`, 1, -1, schema.TableCut, 1, "t.jsonl:3: the file ends inside the line"},
		{"cut between lines", userHeader + row, 1, 5, schema.TableCut, 4, "the status file promises 5 rows, the file has 1"},
		{"whole last line without line feed", userHeader + row + `{"i": 2}`, 2, 2, "", 0, ""},
		{"unknown column", userHeader + `{"i": 1, "other": 2}` + "\n", 1, -1, schema.TableValue, 1, `t.jsonl:2: no column "other"`},
		{"text for a number", userHeader + `{"i": "1"}` + "\n", 1, -1, schema.TableValue, 1, "t.jsonl:2: column i is int64 and not \"1\""},
		{"fraction", userHeader + `{"i": 1.5}` + "\n", 1, -1, schema.TableValue, 1, "column i"},
		{"too large", userHeader + `{"i": 9223372036854775808}` + "\n", 1, -1, schema.TableValue, 1, "column i"},
		{"true for a number", userHeader + `{"i": true, "f": true}` + "\n", 1, -1, schema.TableValue, 2, "column i"},
		{"object for a text", userHeader + `{"s": {"a": 1}}` + "\n", 1, -1, schema.TableValue, 1, "column s"},
		{"number for a bool", userHeader + `{"b": 1}` + "\n", 1, -1, schema.TableValue, 1, "column b"},
		{"key twice", userHeader + `{"i": 1, "i": 2}` + "\n", 1, -1, schema.TableValue, 1, "twice"},
		{"not UTF-8", userHeader + "{\"s\": \"a\xff\"}\n", 1, -1, schema.InvalidUTF8, 1, "t.jsonl:2: "},
		{"empty file", "", 0, -1, schema.TableUnread, 1, "t.jsonl:1: the file is empty"},
		{"no header", row + row, 0, -1, schema.TableUnread, 1, "no header"},
		{"header is no JSON", "table ops\n" + row, 0, -1, schema.TableUnread, 1, "no header"},
		{"no columns", `{"table":"mine","columns":[]}` + "\n", 0, -1, schema.TableUnread, 1, "declares no columns"},
		{"unknown type", `{"table":"mine","columns":[{"name":"i","type":"int32"}]}` + "\n", 0, -1, schema.TableUnread, 1, `type "int32"`},
		{"column twice", `{"table":"mine","columns":[{"name":"i","type":"int64"},{"name":"i","type":"int64"}]}` + "\n", 0, -1, schema.TableUnread, 1, "twice"},
		{"columns that differ in case", `{"table":"mine","columns":[{"name":"i","type":"int64"},{"name":"I","type":"int64"}]}` + "\n", 0, -1, schema.TableUnread, 1, "taken"},
		{"reserved column", `{"table":"mine","columns":[{"name":"model","type":"string"}]}` + "\n", 0, -1, schema.TableUnread, 1, "taken"},
		{"bad name", `{"table":"../mine","columns":[{"name":"i","type":"int64"}]}` + "\n", 0, -1, schema.TableUnread, 1, "small letters"},
		{"bad column name", `{"table":"mine","columns":[{"name":"a b","type":"int64"}]}` + "\n", 0, -1, schema.TableUnread, 1, `"a b"`},
		{"known table, type differs", ops(strings.Replace(full, "int64", "string", 1)) + "{}\n", 0, -1, schema.TableUnread, 1, "guard_index"},
		{"known table, column missing", ops(strings.Replace(full, `,{"name":"stack","type":"string"}`, "", 1)) + "{\"code\": \"x\"}\n", 1, -1, schema.TableColumns, 1, "stack"},
		{"known table, further column", ops(full+`,{"name":"more","type":"string"}`) + "{\"more\": \"x\"}\n", 1, -1, schema.TableValue, 1, "more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := readText(t, c.text, Options{Rows: c.promised})
			n, message := int64(0), ""
			for _, d := range g.diags {
				if d.Code != c.code {
					t.Errorf("unexpected %s: %s", d.Code, d.Message)
				}
				n += d.Count
				message += d.Message + "\n"
			}
			if len(g.rows) != c.rows || n != c.n || !strings.Contains(message, c.message) {
				t.Errorf("%d rows, %d × %q; want %d rows, %d × %q", len(g.rows), n, message, c.rows, c.n, c.message)
			}
		})
	}
}

// TestLongLine checks that a line without end is set aside without being kept.
func TestLongLine(t *testing.T) {
	long := `{"s": "` + strings.Repeat("x", maxLine) + `"}` + "\n"
	g := readText(t, userHeader+long+`{"i": 1}`+"\n", Options{Rows: -1})
	if len(g.rows) != 1 || len(g.diags) != 1 || g.diags[0].Code != schema.TableRow || !strings.Contains(g.diags[0].Message, "t.jsonl:2: the line is longer") {
		t.Errorf("%d rows, %v", len(g.rows), g.diags)
	}
}

// TestMissing checks that a promised file that is not there is reported.
func TestMissing(t *testing.T) {
	d := &schema.Diagnostics{}
	err := Read(context.Background(), filepath.Join(t.TempDir(), "no.jsonl"), Options{Name: "tables/no.jsonl", Diags: d})
	if l := d.List(); err != nil || len(l) != 1 || !strings.HasPrefix(l[0].Message, "tables/no.jsonl: no such file") {
		t.Errorf("%v %v", err, l)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(userHeader + `{"i": 1, "f": NaN}` + "\n")
	f.Add(`{"table":"ops","columns":[{"name":"name","type":"string"}]}` + "\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		rows := 0
		o := Options{Name: "t", Rows: -1, RowGroup: 3, Diags: &schema.Diagnostics{}}
		o.Start = func(*schema.Table) (string, error) { return "", nil }
		o.RowGroups = func(tab *schema.Table, n int, cols []schema.Vector) error {
			rows += n
			for c := range cols {
				if v := cols[c]; v.Rows == nil && c > 0 && len(v.Vals) != n || v.Rows != nil && len(v.Rows) != len(v.Vals) {
					t.Fatalf("column %s: %d values, %d row numbers, %d rows", tab.Columns[c].Name, len(v.Vals), len(v.Rows), n)
				}
			}
			return nil
		}
		if err := read(context.Background(), strings.NewReader(text), o); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(text, "\n"); rows > lines {
			t.Fatalf("%d rows of %d lines", rows, lines)
		}
	})
}
