package query

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
)

// fixed is a result in memory.
type fixed struct {
	cols   []Column
	values [][]any
	closed bool
}

func (f *fixed) Columns() []Column { return f.cols }
func (f *fixed) Close() error      { f.closed = true; return nil }

func (f *fixed) Next(dest []any) error {
	if len(f.values) == 0 {
		return io.EOF
	}
	copy(dest, f.values[0])
	f.values = f.values[1:]
	return nil
}

func example() *fixed {
	return &fixed{
		cols: []Column{{"id", "BIGINT"}, {"name", "VARCHAR"}, {"name", "VARCHAR"}, {"x", "DOUBLE"}},
		values: [][]any{
			{int64(9007199254740993), "plain", nil, 0.5},
			{int64(-1), "a,\"b\"\nc", "\x1b[31m", math.Inf(-1)},
			{nil, strings.Repeat("é", 100), Object{{"dur_ns", int64(1)}, {"l", []any{nil, true, Number("170141183460469231731687303715884105727")}}}, 1e300},
		},
	}
}

func TestPrint(t *testing.T) {
	long := strings.Repeat("é", 100)
	for format, want := range map[Format]string{
		CSV: "id,name,name,x\n" +
			"9007199254740993,plain,,0.5\n" +
			"-1,\"a,\"\"b\"\"\nc\",\x1b[31m,-Inf\n" +
			"," + long + `,"{""dur_ns"":1,""l"":[null,true,170141183460469231731687303715884105727]}",1e+300` + "\n",
		JSON: `{"id":9007199254740993,"name":"plain","name_2":null,"x":0.5}` + "\n" +
			`{"id":-1,"name":"a,\"b\"\nc","name_2":"\u001b[31m","x":"-Inf"}` + "\n" +
			`{"id":null,"name":"` + long + `","name_2":{"dur_ns":1,"l":[null,true,170141183460469231731687303715884105727]},"x":1e+300}` + "\n",
	} {
		r := example()
		var out bytes.Buffer
		if err := Print(&out, format, r); err != nil {
			t.Fatal(err)
		}
		if out.String() != want || !r.closed {
			t.Errorf("%s:\n%swant\n%s", format, out.String(), want)
		}
		if format == JSON {
			for line := range strings.Lines(out.String()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("not JSON: %s", line)
				}
			}
		}
	}
}

func TestPrintTable(t *testing.T) {
	var out bytes.Buffer
	if err := Print(&out, Table, example()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if strings.ContainsAny(out.String(), "\x1b") || lines[5] != "(3 rows)" || len(lines) != 7 {
		t.Fatalf("%q", out.String())
	}
	if !strings.HasPrefix(lines[2], "9007199254740993  plain ") || !strings.HasPrefix(lines[3], `              -1  a,"b"\x0ac `) {
		t.Errorf("\n%s", out.String())
	}
	if !strings.Contains(lines[4], strings.Repeat("é", maxCell-1)+"…") {
		t.Errorf("a long cell is not cut: %s", lines[4])
	}
}

func TestPrintPlan(t *testing.T) {
	var out bytes.Buffer
	r := &fixed{cols: []Column{{"explain_key", "VARCHAR"}, {"explain_value", "VARCHAR"}}, values: [][]any{{"plan", "+-+\n|x|"}}}
	if err := Print(&out, Table, r); err != nil {
		t.Fatal(err)
	}
	if out.String() != "+-+\n|x|\n" {
		t.Errorf("%q", out.String())
	}
}

func TestPrintEmptyField(t *testing.T) {
	var out bytes.Buffer
	r := &fixed{cols: []Column{{"a", "VARCHAR"}}, values: [][]any{{nil}, {"b"}, {""}}}
	if err := Print(&out, CSV, r); err != nil {
		t.Fatal(err)
	}
	if out.String() != "a\n\"\"\nb\n\"\"\n" {
		t.Errorf("%q", out.String())
	}
}

func TestParseFormat(t *testing.T) {
	for _, f := range Formats {
		if got, err := ParseFormat(string(f)); got != f || err != nil {
			t.Errorf("%s: %v %v", f, got, err)
		}
	}
	if _, err := ParseFormat("xml"); err == nil {
		t.Error("xml is a format")
	}
}
