package activity_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"tracelake/analyze/activity"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// The tests of this file's neighbours compare rows: JSON objects whose rec says
// what they are, in the form in which the reference's answers are kept.

type row = map[string]any

// decodeRow keeps integers exact.
func decodeRow(t testing.TB, line []byte) row {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var r row
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v in %.200s", err, line)
	}
	return r
}

// same compares decoded JSON. Integers compare as texts, so exactly; a number
// with a fraction or exponent on either side compares as float64.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k := range a {
			if v, ok := b[k]; !ok || !same(a[k], v) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		if !strings.ContainsAny(string(a+b), ".eE") {
			return false
		}
		x, _ := a.Float64()
		y, _ := b.Float64()
		return x == y
	}
	return a == b
}

// rows returns our answer for a loaded trace in the form of the reference's.
func rows(t testing.TB, trace *schema.Trace, path, detail string) ([]row, error) {
	t.Helper()
	records, err := captureRows(t, trace, path, activity.Options{Detail: detail})
	if err != nil {
		return nil, err
	}
	return append(traceRows(trace), records...), nil
}

func traceRows(trace *schema.Trace) []row {
	out := []row{headerRow(trace)}
	links := link.Resolve(trace, link.Options{})
	for i := range trace.GPU.Len() {
		out = append(out, eventRow(trace, links, i))
	}
	out = append(out, launchRows(trace)...)
	for _, s := range trace.Spans {
		out = append(out, row{
			"rec": "span", "pid": num(trace, s.PID), "tid": num(trace, s.TID), "start_us": float(s.Start), "end_us": float(s.End),
			"iteration_ref": refRow(&s.Ref),
		})
	}
	for _, n := range trace.Notes {
		out = append(out, row{"rec": "note", "text": n})
	}
	for name, n := range trace.NotImported { // at most one
		out = append(out, row{"rec": "not_imported", "name": name, "count": num(trace, n)})
	}
	return out
}

func captureRows(t testing.TB, trace *schema.Trace, path string, o activity.Options) ([]row, error) {
	t.Helper()
	lines, err := captureLines(t, trace, path, o)
	var out []row
	for _, line := range lines {
		r := decodeRow(t, line)
		if r["rec"] == nil {
			r["rec"] = "activity_ref"
		}
		out = append(out, r)
	}
	return out, err
}

// captureLines returns capabilities, summary and records as lines of JSON.
func captureLines(t testing.TB, trace *schema.Trace, path string, o activity.Options) ([][]byte, error) {
	t.Helper()
	o.RunID, o.SessionID, o.Compat = "run-1", "session-1", true
	result, err := activity.Capture(trace, path, o)
	if err != nil {
		return nil, err
	}
	out := lines(t, []row{jsonRow(t, "capabilities", result.Capabilities), jsonRow(t, "summary", &result.Summary)})
	var records bytes.Buffer
	if err := result.WriteJSONLines(&records); err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(records.Bytes()) {
		out = append(out, bytes.TrimSuffix(line, []byte("\n")))
	}
	return out, nil
}

// lines writes rows with sorted keys.
func lines(t testing.TB, rows []row) (out [][]byte) {
	t.Helper()
	for _, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, line)
	}
	return out
}

// compareLines reports the first differences between two answers. Lines that
// are not equal as bytes are compared as JSON.
func compareLines(t testing.TB, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	shown := 0
	for i := range min(len(got), len(want)) {
		if bytes.Equal(got[i], want[i]) || same(decodeRow(t, got[i]), decodeRow(t, want[i])) {
			continue
		}
		t.Errorf("row %d:\n got %s\nwant %s", i, got[i], want[i])
		if shown++; shown == 3 {
			return
		}
	}
}

func jsonRow(t testing.TB, rec string, v any) row {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	r := decodeRow(t, text)
	r["rec"] = rec
	return r
}

func num(t *schema.Trace, v int64) any {
	if v == schema.Null {
		return nil
	}
	if s, ok := t.Big[v]; ok {
		return json.Number(s)
	}
	return json.Number(strconv.FormatInt(v, 10))
}

func opt(t *schema.Trace, v schema.Opt[int64]) any {
	if !v.OK {
		return nil
	}
	return num(t, v.V)
}

func float(tick int64) any { return floatUS(schema.TickFloat(tick)) }

func floatUS(f float64) any {
	if math.IsInf(f, 0) {
		return fmt.Sprint(f)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return json.Number(s)
}

func refRow(ref *schema.EntityRef) any {
	if ref == nil {
		return nil
	}
	return row{"producer_id": text(ref.Producer), "id": text(ref.ID)}
}

// text is what the decoder of the answers makes of a surrogate.
func text(s string) any { return strings.ReplaceAll(toReplacement(s), "\xff", "\ufffd") }

func toReplacement(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == 0xed && out[i+1] >= 0xa0 {
			out = append(append(out[:i:i], 0xff), out[i+3:]...)
		}
	}
	return string(out)
}

func optText(v schema.Opt[string]) any {
	if !v.OK {
		return nil
	}
	return text(v.V)
}

func headerRow(t *schema.Trace) row {
	names := row{}
	for id, name := range t.DeviceNames {
		names[fmt.Sprint(num(t, id))] = text(name)
	}
	r := row{
		"rec": "header", "source": t.Source, "base_ns": num(t, t.BaseNS), "host": optText(t.Host), "trace_id": optText(t.TraceID),
		"rank": opt(t, t.Rank), "world_size": opt(t, t.WorldSize), "engine_version": optText(t.EngineVersion),
		"cupti_version": optText(t.CUPTIVersion), "device_names": names,
	}
	for key, odd := range t.Odd {
		d := json.NewDecoder(strings.NewReader(odd.JSON))
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil {
			r[key] = v
		}
	}
	return r
}

func eventRow(t *schema.Trace, links *link.Links, i int) row {
	e, l := t.GPU.At(i), links.At(t, i)
	var reason, launch any
	if l.Reason != "" {
		reason = l.Reason
	}
	if l.Launch != nil {
		launch = row{
			"pid": num(t, l.Launch.PID), "tid": num(t, l.Launch.TID), "ts_us": floatUS(l.Launch.TSUS), "name": text(l.Launch.Name),
		}
	}
	name := text(e.Name)
	if t.NullName.OK && t.GPU.Name[i] == t.NullName.V {
		name = nil
	}
	return row{
		"rec": "gpu_event", "index": num(t, int64(i)), "start_ns": num(t, e.StartNS), "end_ns": num(t, e.EndNS),
		"kind": e.Kind.String(), "name": name, "device": opt(t, e.Device), "stream": opt(t, e.Stream),
		"correlation": opt(t, e.Correlation), "graph_id": opt(t, e.GraphID), "graph_node_id": opt(t, e.GraphNodeID),
		"pid": opt(t, e.PID), "device_uuid": optText(e.DeviceUUID), "device_name": optText(e.DeviceName),
		"link": row{"iteration_ref": refRow(l.IterationRef), "reason": reason, "launch": launch},
	}
}

// launchRows keeps the place of the first call of a key and the values of the
// last, as the reference's table does.
func launchRows(t *schema.Trace) (out []row) {
	at := map[[2]int64]int{}
	for i := range t.Launches.Len() {
		key := [2]int64{t.Launches.Key(i), t.Launches.Correlation[i]}
		c := t.Launches.At(i)
		r := row{
			"rec": "launch", "key_pid": num(t, key[0]), "correlation": num(t, key[1]),
			"pid": num(t, c.PID), "tid": num(t, c.TID), "ts_us": floatUS(c.TSUS), "name": text(c.Name),
		}
		if p, ok := at[key]; ok {
			out[p] = r
			continue
		}
		at[key] = len(out)
		out = append(out, r)
	}
	return out
}

// compareRows reports the first differences between two answers.
func compareRows(t testing.TB, got, want []row) {
	t.Helper()
	shown := 0
	for i := range max(len(got), len(want)) {
		var g, w any
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if same(g, w) {
			continue
		}
		a, _ := json.Marshal(g)
		b, _ := json.Marshal(w)
		t.Errorf("row %d:\n got %s\nwant %s", i, a, b)
		if shown++; shown == 3 {
			return
		}
	}
}
