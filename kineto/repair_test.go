package kineto

import (
	"fmt"
	"strings"
	"testing"

	"tracelake/schema"
)

// broken wraps one event, given as text, in a trace with two healthy events
// before and two behind it.
func broken(event, sep string) []byte {
	ok := func(i int) string {
		return fmt.Sprintf(`{"ph":%[1]s"X",%[1]s"cat":%[1]s"cpu_op",%[1]s"name":%[1]s"ok%[2]d",%[1]s"pid":%[1]s1,%[1]s"tid":%[1]s1,%[1]s"ts":%[1]s%[2]d,%[1]s"dur":%[1]s1}`, sep, i)
	}
	return []byte(`{"traceEvents":[` + strings.Join([]string{ok(0), ok(1), event, ok(3), ok(4)}, ","+sep) + `]}`)
}

const head = `{"ph":"X","cat":"cpu_op","pid":1,"tid":1,"ts":2,"dur":1,`

// TestMend checks broken events that can be mended: what becomes of them, and
// that the events around them are untouched.
func TestMend(t *testing.T) {
	for _, c := range []struct {
		event string
		code  schema.Code
		want  string // in the row of the event
	}{
		{head + `"name":"a "b" c"}`, schema.UnescapedQuote, `name="a \"b\" c"`},
		{head + `"name":"f("x", "y")"}`, schema.UnescapedQuote, `name="f(\"x\", \"y\")"`},
		{head + `"name":"{"a": 1, "b": "c"}"}`, schema.UnescapedQuote, `name="{\"a\": 1, \"b\": \"c\"}"`},
		{`{"ph":"X","cat":"cpu_op","name":"{"name": "z", "pid": "c"}","pid":1,"tid":1,"ts":2,"dur":1}`, schema.UnescapedQuote, `name="{\"name\": \"z\", \"pid\": \"c\"}"`},
		{head + `"name":"n","args":{"Call stack":"a "b" c","External id":5}}`, schema.UnescapedQuote, `call_stack="a \"b\" c"`},
		{head + `"name":"n","args":{"External id":5,"Call stack":"a "b" c"}}`, schema.UnescapedQuote, `external_id=5`},
		{head + `"name":"n","args":{"External id":5,"other":"a "b""}}`, schema.UnescapedQuote, `{\"other\":\"a \\\"b\\\"\"}`},
		{head + `"name":"C:\users\x"}`, schema.InvalidEscape, `name="C:\\users\\x"`},
		{head + `"name":"C:\dir\"}`, schema.InvalidEscape, `name="C:\\dir\\"`},
		{head + `"name":"n","args":{"dir":"C:\tmp\"}}`, schema.InvalidEscape, `C:\\\\tmp`},
		{head + "\"name\":\"a\nb\x01\"}", schema.ControlCharacter, `name="a\nb\x01"`},
		{head + "\"name\":\"caf\xe9\"}", schema.InvalidUTF8, "name=\"caf\uFFFD\""},
		{head + `"name":"n","args":{"External id":N/A,"x":nan}}`, schema.BareWord, `N/A`},
		{head + `"name":"n","args":{"External id":5,}}`, schema.TrailingComma, `external_id=5`},
		{head + `"name":"n",}`, schema.TrailingComma, `name="n"`},
		{head + `"name":"n","args":{"Concrete Inputs":["","a "b" c"],"External id":5}}`, schema.BareWord, `external_id=5`},
		{`{"ph":"M","name":"process_labels","pid":1,"tid":0,"ts":2,"args":{"labels":"CPU "x""}}`, schema.UnescapedQuote, `value="CPU \"x\""`},
	} {
		for _, sep := range []string{"", "\n    "} {
			got := readAll(t, from(broken(c.event, sep)), Options{Workers: 1})
			if got.err != "" {
				t.Errorf("%s: %s", c.event, got.err)
				continue
			}
			rows := append(append([]string(nil), got.rows["cpu_events"]...), got.rows["metadata"]...)
			text := strings.Join(rows, "\n")
			if !strings.Contains(text, c.want) || strings.Count(text, `name="ok`) != 4 || len(rows) != 5 {
				t.Errorf("%s: want %s in\n%s", c.event, c.want, text)
			}
			if len(got.diags) == 0 || !strings.HasPrefix(got.diags[0], string(c.code)) || strings.Contains(strings.Join(got.diags, " "), string(schema.BrokenEvent)) {
				t.Errorf("%s: want %s, noticed %v", c.event, c.code, got.diags)
			}
		}
	}
}

// TestSetAside checks broken events that cannot be mended: exactly one is lost,
// with its offset, and the events around it are untouched.
func TestSetAside(t *testing.T) {
	for _, event := range []string{
		head + `name": "n"}`,
		head + `"name: "n"}`,
		`{"ph":"X","cat" "cpu_op","name":"n"}`,
		`{"ph":"X" "cat":"cpu_op","name":"n"}`,
		`{"ph":"X","cat":,"name":"n"}`,
		head + `"name":"n"}}`,
		head + `"name":"n"`,
		head + `"name":"n","args":{"a":1}`,
		head + `"name":"n,"args":{"a":1}}`,
		`{'ph':'X','name':'n'}`,
		`@@@ garbage`,
		"\x00\x00\x00",
		`{`,
		`{]`,
	} {
		for _, sep := range []string{"", "\n  "} {
			text := broken(event, sep)
			got := readAll(t, from(text), Options{Workers: 1})
			rows := strings.Join(got.rows["cpu_events"], "\n")
			lost := 0
			for _, d := range got.diags {
				if strings.HasPrefix(d, string(schema.BrokenEvent)) {
					lost++
					at := strings.Index(string(text), ","+sep+event+","+sep) + 1 + len(sep)
					if want := fmt.Sprintf("offset=%d ", at); !strings.Contains(d, want) {
						t.Errorf("%s: %s, want %s", event, d, want)
					}
				}
			}
			if got.err != "" || lost != 1 || strings.Count(rows, `name="ok`) != 4 || len(got.rows["cpu_events"]) != 4 {
				t.Errorf("%q: lost %d, %s\n%s\n%v", event, lost, got.err, rows, got.diags)
			}
		}
	}
}

// TestSetAsideAlone: however events are separated and whatever their first key is,
// a broken one takes no other along.
func TestSetAsideAlone(t *testing.T) {
	for _, first := range []string{`"ph":"X"`, `"tts":1,"ph":"X"`, `"uuid":{"a":[{}]},"ph":"X"`} {
		for _, comma := range []string{",", ""} {
			var events []string
			for i := range 1000 {
				cat := `"cpu_op"`
				if i == 3 {
					cat = "oops:"
				}
				events = append(events, fmt.Sprintf(`{%s,"cat":%s,"name":"n","pid":1,"tid":1,"ts":%d,"dur":1,"args":{"a":{"b":1}}}`, first, cat, i))
			}
			text := []byte(`{"traceEvents":[` + strings.Join(events, comma+"\n") + `]}`)
			for _, o := range []Options{{Workers: 1}, {Workers: 2, ChunkSize: 700}} {
				got := readAll(t, from(text), o)
				if n := len(got.rows["cpu_events"]); n != 999 || got.err != "" {
					t.Errorf("%s, comma %q, chunks of %d: %d rows, %s %.300s", first, comma, o.ChunkSize, n, got.err, got.diags)
				}
			}
		}
	}
}

// TestBeforeZero: a trace begins at its first event, also where that is before 0
// and others are at 0.
func TestBeforeZero(t *testing.T) {
	for text, want := range map[string]int64{
		`[{"ph":"X","name":"a","pid":1,"tid":1,"ts":-100,"dur":50},{"ph":"X","name":"b","pid":1,"tid":1,"ts":0,"dur":5}]`: -100_000,
		`[{"ph":"X","name":"a","pid":1,"tid":1,"ts":100,"dur":50},{"ph":"X","name":"b","pid":1,"tid":1,"ts":0,"dur":5}]`:  0,
		`[{"ph":"X","name":"b","pid":1,"tid":1,"ts":0,"dur":5}]`:                                                          0,
	} {
		res, err := Read(t.Context(), from([]byte(text))(), Options{})
		if err != nil || res.First != want {
			t.Errorf("%s: begins at %d, %v; want %d", text, res.First, err, want)
		}
	}
}

// TestBrokenHeader checks that a broken header value costs no event.
func TestBrokenHeader(t *testing.T) {
	events := `"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1}]`
	for _, text := range []string{
		`{"traceName":"a "b" c",` + events + `}`,
		`{"traceName":"C:\dir\",` + events + `}`,
		`{"a":,` + events + `}`,
		`{"a":[1,` + events + `}`,
		`{` + events + `,"traceName":"a "b" c"}`,
		`{` + events + `,"traceName":"C:\dir\new\x"}`,
		`{` + events + ",\n\"INFO\":[\"a \"b\" c\"],\n\"distributedInfo\":{\"rank\":3,\"world_size\":4}}",
	} {
		got := readAll(t, from([]byte(text)), Options{})
		if got.err != "" || len(got.rows["cpu_events"]) != 1 || !strings.Contains(strings.Join(got.diags, " "), string(schema.BrokenHeader)) {
			t.Errorf("%s: %s %v %v", text, got.err, got.rows, got.diags)
		}
	}
}

// TestRankInName checks the patterns of the launchers.
func TestRankInName(t *testing.T) {
	for name, want := range map[string]int64{
		"rank3.json": 3, "trace_rank_3.json.gz": 3, "rank-12.json.gz": 12, "r3-2025-01-01.json": 3, "out_r7.json": 7,
		"1782841132.2905657-TP-1-DP-0-PP-0-EP-0.trace.json.gz": 1, "x-TP-0-DECODE.trace.json.gz": 0,
		"dp0_pp0_tp1_dcp0_ep1_rank5.1773709679453551615.pt.trace.json.gz": 5, "bs_32_rank0.json.gz": 0,
		"TP-0-DP-1.json": -1, "worker0.pt.trace.json": -1, "rank_non_gpu.json.gz": -1, "rank_not_found.json.gz": -1,
		"trace.json": -1, "resnet18.json": -1, "for4-rank.json": -1, "error1.json": -1,
	} {
		got := RankInName("/some/rank9/dir/" + name)
		if got.OK != (want >= 0) || got.OK && got.V != want {
			t.Errorf("%s: %v, want %d", name, got, want)
		}
	}
}
